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
