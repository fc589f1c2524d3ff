(* Products of three factors, of which two are multiplied first: Δ·B·x̂ in a scan.

   Without the premise on a pair the lemma is false: if x̂ is 0 and Δ·B overflows, the product is NaN
   ([zero_times_infinity]). *)

From Coq Require Import ZArith Reals List Lra Lia.
From Flocq Require Import Core BinarySingleNaN.
From Lemmas Require Import Formats Sums.
Open Scope R_scope.

Section Factors.
Context (p emax : Z) (positive : Prec_gt_0 p) (room : Prec_lt_emax p emax) (mode : BinarySingleNaN.mode).
Notation float := (binary_float p emax).
Notation "x ⊗ y" := (Bmult mode x y) (at level 40, left associativity).

Lemma product_ieee F e (x y : float) :
  bits F = p -> (3 - emax - p <= least F)%Z -> largest F < two emax ->
  is_finite x = true -> is_finite y = true -> (least F <= e)%Z -> multiple e (B2R x * B2R y) ->
  Rabs (B2R x * B2R y) <= two (p + e) -> Rabs (B2R x * B2R y) <= largest F ->
  is_finite (x ⊗ y) = true /\ B2R (x ⊗ y) = B2R x * B2R y.
Proof.
  intros Hp He Hl Fx Fy Hu Hm Hb Ht.
  assert (W : within F e (terms (exact p emax (ITerm p emax x y)))).
  { split; [exact Hu|]. rewrite Hp. cbn. repeat split.
    - intros z [<-|[]]. exact Hm.
    - rewrite !Rplus_0_r. apply Rabs_le_inv in Hb. pose proof (bpow_ge_0 radix2 (p + e)).
      repeat apply Rmax_lub; lra.
    - rewrite !Rplus_0_r. apply Rabs_le_inv in Ht. repeat apply Rmax_lub; lra. }
  destruct (sums_ieee p emax positive room mode F e (ITerm p emax x y) Hp He Hl (conj Fx Fy) W) as [A B].
  split; [exact A|]. rewrite <- (Rplus_0_r (_ * _)). exact B.
Qed.

Lemma nonzero_at_least e x : multiple e x -> x <> 0 -> two e <= Rabs x.
Proof.
  intros [n ->] H. rewrite Rabs_mult, (Rabs_pos_eq (two e)) by apply bpow_ge_0.
  assert (1 <= Rabs (IZR n)).
  { rewrite <- abs_IZR. apply IZR_le. enough (n <> 0)%Z by lia. intros ->. apply H. ring. }
  rewrite <- (Rmult_1_l (two e)) at 1. apply Rmult_le_compat_r; [apply bpow_ge_0|assumption].
Qed.

(* Lemma of every entry: the pair that is multiplied first is bounded by itself, since the third factor may be 0. *)
Theorem products_of_three F e f g (a b c : float) :
  bits F = p -> (3 - emax - p <= least F)%Z -> largest F < two emax ->
  generic_format radix2 (FLT_exp (3 - emax - p) p) (largest F) ->
  is_finite a = true -> is_finite b = true -> is_finite c = true ->
  multiple e (B2R a) -> multiple f (B2R b) -> multiple g (B2R c) ->
  (least F <= e + f)%Z -> (least F <= e + f + g)%Z ->
  Rabs (B2R a * B2R b) <= largest F ->
  Rabs (B2R a * B2R b * B2R c) <= two (p + (e + f + g)) -> Rabs (B2R a * B2R b * B2R c) <= largest F ->
  is_finite (a ⊗ b ⊗ c) = true /\ B2R (a ⊗ b ⊗ c) = B2R a * B2R b * B2R c.
Proof.
  intros Hp He Hl Hf Fa Fb Fc Ma Mb Mc Hu Hv Hab Hb Ht.
  destruct (Req_dec (B2R c) 0) as [C0|C0].
  - (* x̂ = 0: the pair rounds to some finite number *)
    assert (F1 : is_finite (a ⊗ b) = true).
    { pose proof (Bmult_correct p emax _ _ mode a b) as K. rewrite Rlt_bool_true in K.
      - destruct K as (_ & K & _). rewrite K, Fa, Fb. reflexivity.
      - apply Rle_lt_trans with (2 := Hl). apply abs_round_le_generic; try assumption; try typeclasses eauto. }
    pose proof (Bmult_correct p emax _ _ mode (a ⊗ b) c) as K. rewrite C0, !Rmult_0_r, round_0, Rabs_R0 in *
      by typeclasses eauto.
    rewrite Rlt_bool_true in K by apply bpow_gt_0. destruct K as (K1 & K2 & _). rewrite K1, K2, F1, Fc. now split.
  - destruct (product_ieee F (e + f) a b) as [F1 E1]; try assumption.
    + now apply multiple_mult.
    + apply Rmult_le_reg_r with (two g); [apply bpow_gt_0|]. rewrite <- bpow_plus.
      replace (p + (e + f) + g)%Z with (p + (e + f + g))%Z by lia.
      apply Rle_trans with (2 := Hb). rewrite (Rabs_mult (_ * _)).
      apply Rmult_le_compat_l; [apply Rabs_pos|]. now apply nonzero_at_least.
    + destruct (product_ieee F (e + f + g) (a ⊗ b) c) as [F2 E2]; rewrite ?E1; try assumption.
      * apply multiple_mult; [now apply multiple_mult|assumption].
      * split; [exact F2|]. now rewrite E2, E1.
Qed.

Theorem zero_times_infinity sign zero : Bmult mode (B754_zero zero : float) (B754_infinity sign) = B754_nan.
Proof. reflexivity. Qed.
End Factors.
