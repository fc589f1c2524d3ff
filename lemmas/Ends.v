(* Ends of intervals that may grow with the length, as the small kernel has them (verify/kernel/language.py). *)

From Coq Require Import ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats.
Import ListNotations.
Open Scope R_scope.

(* Lemma of every length: the small kernel's numbers may be larger than floats. There each end of an interval is below
   2^200, whatever the length, or it grows with the length and is at least 2^448; anything between is refused. *)
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

(* Intervals of such ends, as the small kernel has them: a least end that grows with the length falls, a largest one
  rises.
   What a product or a sum comes to is looked at when it is used; on the way it may be anything. *)
Definition whole (f : R -> R) : Prop := exists k, f (two 512) = IZR k.
Definition checked (f : R -> R) : Prop := Rabs (f (two 512)) < two 200 \/ two 448 <= Rabs (f (two 512)).
Definition low_end (f : R -> R) : Prop := finite f \/ falling f.
Definition high_end (f : R -> R) : Prop := finite f \/ rising f.
Definition still (f : R -> R) : Prop := (forall n, two 512 <= n -> f n = f (two 512)) /\ Rabs (f (two 512)) < two 400.

Lemma rising_same f g : (forall n, f n = g n) -> rising f -> rising g.
Proof. intros E [A M]. split; [rewrite <- E; exact A|]. intros n N. rewrite <- !E. now apply M. Qed.

Lemma falling_same f g : (forall n, f n = g n) -> falling f -> falling g.
Proof. intros E. apply rising_same. intros n. now rewrite E. Qed.

Lemma still_same f g : (forall n, f n = g n) -> still f -> still g.
Proof. intros E [A M]. split; [intros n N; rewrite <- !E; now apply A|now rewrite <- E]. Qed.

Lemma rising_product f g : rising f -> rising g -> rising (fun n => f n * g n).
Proof.
  intros [A M] [B N]. assert (One : 1 <= two 448) by (change 1 with (two 0); apply bpow_le; lia). split.
  - rewrite <- (Rmult_1_l (two 448)). apply Rmult_le_compat; lra.
  - intros n H. specialize (M n H). specialize (N n H). apply Rmult_le_compat; lra.
Qed.

Lemma falling_times_rising f g : falling f -> rising g -> falling (fun n => f n * g n).
Proof. intros F G. apply (rising_same (fun n => - f n * g n)); [intros; ring|now apply (rising_product (fun n => - f
  n))]. Qed.

Lemma still_product f g : finite f -> finite g -> still (fun n => f n * g n).
Proof.
  intros [F A] [G B]. split; [intros n N; now rewrite (F n N), (G n N)|]. rewrite Rabs_mult.
  replace (two 400) with (two 200 * two 200) by (rewrite <- bpow_plus; reflexivity).
  apply Rmult_le_0_lt_compat; try apply Rabs_pos; assumption.
Qed.

Lemma positive_times_rising f g : whole f -> finite f -> 0 < f (two 512) -> rising g -> rising (fun n => f n * g n).
Proof.
  intros [k W] [F _] P [A M]. assert (K : 1 <= f (two 512)).
  { rewrite W in *. apply IZR_le. assert (0 < k)%Z by (now apply lt_IZR). lia. }
  pose proof (bpow_gt_0 radix2 448). split.
  - rewrite <- (Rmult_1_l (two 448)). apply Rmult_le_compat; lra.
  - intros n N. rewrite (F n N). apply Rmult_le_compat_l; [lra|now apply M].
Qed.

Lemma positive_times_falling f g : whole f -> finite f -> 0 < f (two 512) -> falling g -> falling (fun n => f n * g n).
Proof. intros W F P G. apply (rising_same (fun n => f n * - g n)); [intros; ring|now apply positive_times_rising]. Qed.

Lemma negated f : (finite f -> finite (fun n => - f n)) /\ (whole f -> whole (fun n => - f n)).
Proof.
  split.
  - intros [F A]. split; [intros n N; now rewrite (F n N)|]. now rewrite Rabs_Ropp.
  - intros [k W]. exists (- k)%Z. rewrite W. now rewrite opp_IZR.
Qed.

Lemma negative_times_rising f g : whole f -> finite f -> f (two 512) < 0 -> rising g -> falling (fun n => f n * g n).
Proof.
  intros W F P G. apply (rising_same (fun n => - f n * g n)); [intros; ring|]. destruct (negated f).
  apply (positive_times_rising (fun n => - f n)); auto. lra.
Qed.

Lemma zero_times f g : finite f -> f (two 512) = 0 -> still (fun n => f n * g n).
Proof.
  intros [F _] Z. split; [intros n N; rewrite (F n N), Z; ring|]. rewrite Z, Rmult_0_l, Rabs_R0. apply bpow_gt_0.
Qed.

Definition any_end (f : R -> R) : Prop := still f \/ rising f \/ falling f.

Lemma any_same f g : (forall n, f n = g n) -> any_end f -> any_end g.
Proof.
  intros E [H|[H|H]]; [left; now apply (still_same f)|right; left; now apply (rising_same f)|right; right; now apply
    (falling_same f)].
Qed.

Lemma product_of_any_ends f g : whole f -> whole g -> finite f \/ rising f \/ falling f -> finite g \/ rising g \/
  falling g ->
  any_end (fun n => f n * g n).
Proof.
  assert (Half : forall f g, whole f -> finite f -> rising g \/ falling g -> any_end (fun n => f n * g n)).
  { clear. intros f g W F G. destruct (Rtotal_order (f (two 512)) 0) as [S|[S|S]].
    - destruct G as [G|G]; [right; right; now apply negative_times_rising|].
      right; left. apply (rising_same (fun n => - (f n * - g n))); [intros; ring|].
      now apply (negative_times_rising f (fun n => - g n)).
    - left. now apply zero_times.
    - destruct G as [G|G]; [right; left; now apply positive_times_rising|right; right; now apply
      positive_times_falling]. }
  intros Wf Wg [F|F] [G|G].
  - left. now apply still_product.
  - now apply Half.
  - apply (any_same (fun n => g n * f n)); [intros; ring|now apply Half].
  - destruct F as [F|F], G as [G|G].
    + right; left. now apply rising_product.
    + right; right. apply (falling_same (fun n => g n * f n)); [intros; ring|now apply falling_times_rising].
    + right; right. now apply falling_times_rising.
    + right; left. apply (rising_same (fun n => - f n * - g n)); [intros; ring|].
      now apply (rising_product (fun n => - f n) (fun n => - g n)).
Qed.

(* One of the four products of ends does not rise. *)
Lemma one_does_not_rise a b c d : low_end a -> high_end b -> low_end c -> high_end d ->
  whole a -> whole b -> whole c -> whole d -> c (two 512) <= d (two 512) ->
  exists p, In p [(a, c); (a, d); (b, c); (b, d)] /\
    (still (fun n => fst p n * snd p n) \/ falling (fun n => fst p n * snd p n)).
Proof.
  intros A B C D Wa Wb Wc Wd CD. pose proof (bpow_gt_0 radix2 448) as P448.
  assert (Swap : forall f g, still (fun n => g n * f n) \/ falling (fun n => g n * f n) ->
    still (fun n => f n * g n) \/ falling (fun n => f n * g n)).
  { intros f g [H|H]; [left; apply (still_same (fun n => g n * f n))|right; apply (falling_same (fun n => g n * f n))];
      auto; intros; ring. }
  destruct D as [D|D].
  2:{ destruct A as [A|A]; [|exists (a, d); split; [simpl; auto|right; now apply falling_times_rising]].
      destruct C as [C|C]; [exists (a, c); split; [simpl; auto|left; now apply still_product]|].
      destruct B as [B|B].
      - destruct (Rtotal_order (b (two 512)) 0) as [S|[S|S]].
        + exists (b, d). split; [simpl; auto|right; now apply negative_times_rising].
        + exists (b, d). split; [simpl; auto|left; now apply zero_times].
        + exists (b, c). split; [simpl; auto|right; now apply positive_times_falling].
      - exists (b, c). split; [simpl; auto|]. apply Swap. right. now apply falling_times_rising. }
  destruct B as [B|B]; [exists (b, d); split; [simpl; auto 6|left; now apply still_product]|].
  destruct A as [A|A]; [exists (a, d); split; [simpl; auto|left; now apply still_product]|].
  destruct (Rtotal_order (d (two 512)) 0) as [S|[S|S]].
  - destruct C as [C|C].
    + exists (b, c). split; [simpl; auto|]. apply Swap. right. apply (negative_times_rising c b Wc C); [lra|exact B].
    + exists (b, c). split; [simpl; auto|]. apply Swap. right. now apply falling_times_rising.
  - exists (b, d). split; [simpl; auto 6|]. apply Swap. left. now apply zero_times.
  - exists (a, d). split; [simpl; auto|]. apply Swap. right. now apply positive_times_falling.
Qed.

(* The least of ends, one of which does not rise, is a least end if it is one that the check lets through. *)
Lemma least_of_ends (l : list (R -> R)) m : (forall f, In f l -> any_end f) ->
  (exists f, In f l /\ (still f \/ falling f)) ->
  (forall n, (exists f, In f l /\ m n = f n) /\ forall f, In f l -> m n <= f n) -> checked m -> low_end m.
Proof.
  intros K (g & G & S) M C. assert (W : two 200 < two 448) by (apply bpow_lt; lia).
  assert (W4 : two 400 < two 448) by (apply bpow_lt; lia). pose proof (bpow_gt_0 radix2 448) as P448.
  destruct (M (two 512)) as ((f & F & E) & L).
  destruct C as [C|C].
  - left. split; [|exact C]. apply Rabs_def2 in C.
    assert (Sf : still f) by (destruct (K f F) as [H|[[H _]|[H _]]]; [exact H|lra|lra]).
    intros n N. destruct (M n) as ((h & H & Eh) & Ln). apply Rle_antisym.
    + apply Rle_trans with (1 := Ln f F). destruct Sf as [Sf _]. rewrite (Sf n N). lra.
    + rewrite Eh. specialize (L h H). destruct (K h H) as [[Kh _]|[[_ Kh]|[Kh _]]]; [rewrite (Kh n N)|specialize (Kh n
      N)|]; lra.
  - right. assert (Low : m (two 512) <= - two 448).
    { unfold Rabs in C. destruct (Rcase_abs (m (two 512))); [lra|]. specialize (L g G). destruct S as [[_ S]|[S _]];
      [|lra].
      apply Rabs_def2 in S. lra. }
    assert (Ff : falling f).
    { destruct (K f F) as [[_ H]|[[H _]|H]]; [apply Rabs_def2 in H; rewrite <- E in H; lra|lra|exact H]. }
    split; [lra|]. intros n N. destruct (M n) as (_ & Ln). specialize (Ln f F). destruct Ff as [_ Ff]. specialize (Ff
      n N). lra.
Qed.

Theorem least_product_of_intervals a b c d : low_end a -> high_end b -> low_end c -> high_end d ->
  whole a -> whole b -> whole c -> whole d -> c (two 512) <= d (two 512) ->
  let m n := Rmin (Rmin (a n * c n) (a n * d n)) (Rmin (b n * c n) (b n * d n)) in checked m -> low_end m.
Proof.
  intros A B C D Wa Wb Wc Wd CD m H.
  assert (Sa : finite a \/ rising a \/ falling a) by (destruct A; auto).
  assert (Sb : finite b \/ rising b \/ falling b) by (destruct B; auto).
  assert (Sc : finite c \/ rising c \/ falling c) by (destruct C; auto).
  assert (Sd : finite d \/ rising d \/ falling d) by (destruct D; auto).
  apply (least_of_ends [fun n => a n * c n; fun n => a n * d n; fun n => b n * c n; fun n => b n * d n]); [| | |exact
    H].
  - intros f [<-|[<-|[<-|[<-|[]]]]]; now apply product_of_any_ends.
  - destruct (one_does_not_rise a b c d A B C D Wa Wb Wc Wd CD) as (p & P & Q).
    exists (fun n => fst p n * snd p n). split; [|exact Q].
    destruct P as [<-|[<-|[<-|[<-|[]]]]]; simpl; auto 6.
  - intros n. unfold m. split.
    + unfold Rmin. repeat destruct (Rle_dec _ _);
        first [now exists (fun n => a n * c n); split; [simpl; auto 6|]|now exists (fun n => a n * d n); split;
          [simpl; auto 6|]
              |now exists (fun n => b n * c n); split; [simpl; auto 6|]|now exists (fun n => b n * d n); split;
                [simpl; auto 6|]].
    + intros f [<-|[<-|[<-|[<-|[]]]]]; unfold Rmin; repeat destruct (Rle_dec _ _); lra.
Qed.

(* A sum of least ends, as many as a polynomial can have, is the same for every length, or falls from below −2^447 on.
  *)
Theorem sums_of_least_ends (l : list (R -> R)) : Forall low_end l -> INR (length l) * two 200 <= two 447 ->
  let h n := fold_right (fun f s => f n + s) 0 l in
  (forall n, two 512 <= n -> h n = h (two 512)) \/ (h (two 512) <= - two 447 /\ forall n, two 512 <= n -> h n <= h
    (two 512)).
Proof.
  intros F L h. assert (E : two 448 = 2 * two 447) by (change 448%Z with (447 + 1)%Z; apply two_succ).
  pose proof (bpow_gt_0 radix2 200) as P200. pose proof (bpow_gt_0 radix2 447) as P447.
  enough (G : ((forall n, two 512 <= n -> h n = h (two 512)) /\ Rabs (h (two 512)) <= INR (length l) * two 200) \/
    (h (two 512) <= - two 448 + INR (length l) * two 200 /\ forall n, two 512 <= n -> h n <= h (two 512))).
  { destruct G as [[G _]|[G1 G2]]; [now left|right; split; [lra|exact G2]]. }
  unfold h. clear h L. induction F as [|f l Hf F IH].
  - left. split; [reflexivity|]. cbn [fold_right length INR]. rewrite Rabs_R0. lra.
  - change (length (f :: l)) with (S (length l)). rewrite S_INR. cbn [fold_right].
    destruct Hf as [[Hf Bf]|[Bf Hf]], IH as [[IH BI]|[BI IH]]; cbv beta in *.
    + left. split; [intros n N; now rewrite (Hf n N), (IH n N)|]. apply Rle_trans with (1 := Rabs_triang _ _). lra.
    + right. apply Rabs_def2 in Bf. split; [lra|]. intros n N. rewrite (Hf n N). specialize (IH n N). lra.
    + right. pose proof (Rle_abs (fold_right (fun f s => f (two 512) + s) 0 l)) as Q. split; [lra|].
      intros n N. rewrite (IH n N). specialize (Hf n N). lra.
    + right. assert (0 <= two 448) by lra. split; [lra|]. intros n N. specialize (Hf n N). specialize (IH n N). lra.
Qed.
