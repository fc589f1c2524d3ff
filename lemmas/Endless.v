(* Sequences of every length: one length that stands for all longer ones. *)

From Coq Require Import ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats.
Import ListNotations.
Open Scope R_scope.

(* A bound as a function of the length. The length enters it as a factor of a number, 0 or no less than the least
  unit. *)
Inductive bound :=
  | Number (c : R)
  | Longest (c : R)          (* c times the length *)
  | Both (x y : bound)       (* their sum *)
  | Larger (x y : bound)
  | Smaller (x y : bound).

Fixpoint at_length (b : bound) (n : R) : R :=
  match b with
  | Number c => c
  | Longest c => c * n
  | Both x y => at_length x n + at_length y n
  | Larger x y => Rmax (at_length x n) (at_length y n)
  | Smaller x y => Rmin (at_length x n) (at_length y n)
  end.

Fixpoint in_units (b : bound) : Prop :=
  match b with
  | Number c => 0 <= c
  | Longest c => c = 0 \/ two (-150) <= c
  | Both x y | Larger x y | Smaller x y => in_units x /\ in_units y
  end.

Lemma settled b : in_units b ->
  (forall n, two 512 <= n -> at_length b (two 512) <= at_length b n) /\ 0 <= at_length b (two 512) /\
  ((forall n, two 512 <= n -> at_length b n = at_length b (two 512)) \/ two 362 <= at_length b (two 512)).
Proof.
  pose proof (bpow_gt_0 radix2 512) as P. pose proof (bpow_gt_0 radix2 (-150)) as Q.
  induction b as [c|c|x IHx y IHy|x IHx y IHy|x IHx y IHy]; simpl in_units; cbn [at_length].
  - intros C. repeat split; intros; try lra. left. intros. lra.
  - intros [->|C].
    + repeat split; intros; try lra. left. intros. lra.
    + repeat split.
      * intros n N. apply Rmult_le_compat_l; lra.
      * apply Rmult_le_pos; lra.
      * right. change 362%Z with (-150 + 512)%Z. rewrite bpow_plus. apply Rmult_le_compat_r; [apply bpow_ge_0|exact C].
  - intros [X Y]. destruct (IHx X) as (Mx & Px & Sx), (IHy Y) as (My & Py & Sy). repeat split; try lra.
    + intros n N. specialize (Mx n N). specialize (My n N). lra.
    + destruct Sx as [Sx|Sx], Sy as [Sy|Sy]; [left|right; lra..]. intros n N. now rewrite Sx, Sy.
  - intros [X Y]. destruct (IHx X) as (Mx & Px & Sx), (IHy Y) as (My & Py & Sy).
    pose proof (Rmax_l (at_length x (two 512)) (at_length y (two 512))).
    pose proof (Rmax_r (at_length x (two 512)) (at_length y (two 512))). repeat split; try lra.
    + intros n N. apply Rmax_lub; [apply Rle_trans with (2 := Rmax_l _ _)|apply Rle_trans with (2 := Rmax_r _ _)]; auto.
    + destruct Sx as [Sx|Sx], Sy as [Sy|Sy]; [left|right; lra..]. intros n N. now rewrite Sx, Sy.
  - intros [X Y]. destruct (IHx X) as (Mx & Px & Sx), (IHy Y) as (My & Py & Sy).
    repeat split.
    + intros n N. apply Rmin_glb; [apply Rle_trans with (1 := Rmin_l _ _)|apply Rle_trans with (1 := Rmin_r _ _)]; auto.
    + now apply Rmin_glb.
    + destruct (Rle_dec (two 362) (Rmin (at_length x (two 512)) (at_length y (two 512)))) as [G|G]; [now right|left].
      apply Rnot_le_lt in G. intros n N. specialize (Mx n N). specialize (My n N). revert G. unfold Rmin.
      destruct (Rle_dec (at_length x (two 512)) (at_length y (two 512))) as [L|L]; intros G.
      * destruct Sx as [Sx|Sx]; [rewrite (Sx n N)|lra]. destruct (Rle_dec (at_length x (two 512)) (at_length y n)); lra.
      * destruct Sy as [Sy|Sy]; [rewrite (Sy n N)|lra]. destruct (Rle_dec (at_length x n) (at_length y (two 512))); lra.
Qed.

(* Lemma of every length: what a format can hold at 2^512 letters is the bound for all longer sequences too. *)
Theorem every_length b : in_units b -> at_length b (two 512) <= two 128 ->
  forall n, two 512 <= n -> at_length b n = at_length b (two 512).
Proof.
  intros U B. destruct (settled b U) as (_ & _ & [S|S]); [exact S|].
  assert (two 128 < two 362) by (apply bpow_lt; lia). lra.
Qed.

(* The small kernel's numbers may be larger than floats. There each end of an interval is below 2^200, whatever the
  length,
   or it grows with the length and is at least 2^448; anything between is refused. *)
Definition finite (f : R -> R) : Prop := (forall n, two 512 <= n -> f n = f (two 512)) /\ Rabs (f (two 512)) < two 200.
Definition rising (f : R -> R) : Prop := two 448 <= f (two 512) /\ forall n, two 512 <= n -> f (two 512) <= f n.
Definition falling (f : R -> R) : Prop := rising (fun n => - f n).

(* So an end that is found to be positive, or negative, or 0, is so for every length. *)
Theorem signs_of_ends f : finite f \/ rising f \/ falling f -> forall n, two 512 <= n ->
  (0 < f (two 512) <-> 0 < f n) /\ (f (two 512) < 0 <-> f n < 0) /\ (f (two 512) = 0 <-> f n = 0).
Proof.
  pose proof (bpow_gt_0 radix2 448). intros [[S _]|[[A M]|[A M]]] n N.
  - rewrite (S n N). tauto.
  - specialize (M n N). lra.
  - specialize (M n N). lra.
Qed.

(* Sums and products of such ends are such ends again: of a number of the files, which is whole and below 2^200, and of
   ends that do not pull against each other; where the check finds one that is neither it refuses. *)
Theorem sums_of_ends f g : (finite f \/ rising f) -> (finite g \/ rising g) ->
  let h n := f n + g n in
  Rabs (h (two 512)) < two 200 \/ two 448 <= Rabs (h (two 512)) -> finite h \/ rising h.
Proof.
  assert (W : two 200 + two 200 < two 448).
  { apply Rlt_le_trans with (two 202); [|apply bpow_le; lia]. change 202%Z with (2 + 200)%Z. rewrite bpow_plus.
    change (two 2) with 4. pose proof (bpow_gt_0 radix2 200). lra. }
  intros F G h H.
  assert (T : forall x, Rabs x < two 200 -> - two 200 < x < two 200) by (intros x X; now apply Rabs_def2 in X).
  assert (M : forall n, two 512 <= n -> h (two 512) <= h n).
  { intros n N. unfold h. apply Rplus_le_compat; [destruct F as [[F _]|[_ F]]|destruct G as [[G _]|[_ G]]];
      rewrite ?(F n N), ?(G n N) || idtac; auto using Rle_refl. }
  assert (L : - (two 200 + two 200) < h (two 512)).
  { pose proof (bpow_gt_0 radix2 200). pose proof (bpow_gt_0 radix2 448). unfold h.
    destruct F as [[_ F]|[F _]], G as [[_ G]|[G _]]; try apply T in F; try apply T in G; lra. }
  destruct H as [H|H].
  - left. split; [|exact H]. destruct F as [[F Fb]|[F _]], G as [[G Gb]|[G _]].
    + intros n N. unfold h. now rewrite (F n N), (G n N).
    + apply T in Fb. apply T in H. unfold h in H. lra.
    + apply T in Gb. apply T in H. unfold h in H. lra.
    + apply T in H. unfold h in H. pose proof (bpow_gt_0 radix2 448). lra.
  - right. split; [|exact M]. unfold Rabs in H. destruct (Rcase_abs (h (two 512))); lra.
Qed.

Theorem products_of_ends (c : Z) f : (c <> 0)%Z -> (Z.abs c < 2 ^ 200)%Z -> finite f \/ rising f \/ falling f ->
  let h n := IZR c * f n in
  Rabs (h (two 512)) < two 200 \/ two 448 <= Rabs (h (two 512)) -> finite h \/ rising h \/ falling h.
Proof.
  intros C0 C F h H.
  assert (W : two 200 * two 200 < two 448) by (rewrite <- bpow_plus; apply bpow_lt; lia).
  assert (Ca : 1 <= Rabs (IZR c) < two 200).
  { rewrite <- abs_IZR. change (two 200) with (IZR (2 ^ 200)). split; [apply IZR_le|apply IZR_lt]; lia. }
  destruct F as [[S B]|F].
  - left. split; [intros n N; unfold h; now rewrite (S n N)|]. destruct H as [H|H]; [exact H|].
    unfold h in H. rewrite Rabs_mult in H. pose proof (Rabs_pos (f (two 512))).
    assert (Rabs (IZR c) * Rabs (f (two 512)) <= two 200 * two 200) by (apply Rmult_le_compat; lra). lra.
  - right. assert (E : (1 <= c)%Z \/ (c <= -1)%Z) by lia.
    assert (G : forall (d : R) (g : R -> R), 1 <= d -> rising g -> rising (fun n => d * g n)).
    { intros d g D [A M]. pose proof (bpow_gt_0 radix2 448). split.
      - rewrite <- (Rmult_1_l (two 448)). apply Rmult_le_compat; lra.
      - intros n N. apply Rmult_le_compat_l; [lra|now apply M]. }
    assert (X : forall f g : R -> R, (forall n, f n = g n) -> rising f -> rising g).
    { intros f0 g0 Q [A M]. split; [now rewrite <- Q|]. intros n N. rewrite <- !Q. now apply M. }
    destruct E as [E|E]; apply IZR_le in E; destruct F as [F|F].
    + left. apply (G (IZR c) f); assumption.
    + right. apply (X (fun n => IZR c * - f n)); [intros n; unfold h; ring|]. now apply (G (IZR c)).
    + right. apply (X (fun n => - IZR c * f n)); [intros n; unfold h; ring|]. apply (G (- IZR c)); [lra|assumption].
    + left. apply (X (fun n => - IZR c * - f n)); [intros n; unfold h; ring|]. apply (G (- IZR c)); [lra|assumption].
Qed.
