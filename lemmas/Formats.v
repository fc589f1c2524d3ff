(* Numbers that a float format holds, and what every correct rounding does with them.

   A rounding is a function from the reals to the reals: what an operation returns for its exact result. All that the
   other files use of it is that a number that the format holds is not changed ([keeps]). IEEE formats have this in
   every rounding mode, with gradual underflow ([ieee_keeps]) and with subnormal numbers flushed to 0
   ([flushing_keeps]), and a wider format has it for a narrower one ([wider_keeps]). *)

From Coq Require Import ZArith Reals Lra Lia.
From Flocq Require Import Core FTZ.
Open Scope R_scope.

Notation two := (bpow radix2).

(* x is a multiple of 2^e. *)
Definition multiple (e : Z) (x : R) : Prop := exists n : Z, x = IZR n * two e.

(* A format as verify/checker/formats.py describes it: the bits of its significand, the least unit that no backend
   flushes, and a bound below every overflow. *)
Record format := Format { bits : Z; least : Z; largest : R }.

Definition float32 := Format 24 (-126) (two 127).
Definition bfloat16 := Format 8 (-126) (two 127).
Definition float16 := Format 11 (-24) 65504.

(* x is at most 2^p units of a power of two that the format has, and does not overflow. *)
Definition holds (F : format) (x : R) : Prop :=
  exists e, (least F <= e)%Z /\ multiple e x /\ Rabs x <= two (bits F + e) /\ Rabs x <= largest F.

Definition keeps (F : format) (rounding : R -> R) : Prop := forall x, holds F x -> rounding x = x.

Lemma multiple_0 e : multiple e 0.
Proof. exists 0%Z. lra. Qed.

Lemma multiple_plus e x y : multiple e x -> multiple e y -> multiple e (x + y).
Proof. intros [n ->] [m ->]. exists (n + m)%Z. rewrite plus_IZR. ring. Qed.

Lemma multiple_opp e x : multiple e x -> multiple e (- x).
Proof. intros [n ->]. exists (- n)%Z. rewrite opp_IZR. ring. Qed.

Lemma multiple_mult e f x y : multiple e x -> multiple f y -> multiple (e + f) (x * y).
Proof. intros [n ->] [m ->]. exists (n * m)%Z. rewrite mult_IZR, bpow_plus. ring. Qed.

Lemma multiple_finer e f x : (f <= e)%Z -> multiple e x -> multiple f x.
Proof.
  intros H [n ->]. exists (n * 2 ^ (e - f))%Z.
  rewrite mult_IZR, (IZR_Zpower radix2) by lia. rewrite Rmult_assoc, <- bpow_plus. do 2 f_equal. lia.
Qed.

Lemma holds_opp F x : holds F x -> holds F (- x).
Proof.
  intros (e & He & Hm & Hb & Hl). exists e. rewrite Rabs_Ropp. now split; [|split; [apply multiple_opp|split]].
Qed.

(* Such a number is one of a significand below 2^p and an exponent no smaller, or 2^p units. *)
Lemma holds_significand F x : (0 < bits F)%Z -> holds F x ->
  exists n e, (least F <= e)%Z /\ x = IZR n * two e /\ (Z.abs n < 2 ^ bits F)%Z.
Proof.
  intros Hp (e & He & [n ->] & Hb & _).
  assert (Hn : (Z.abs n <= 2 ^ bits F)%Z).
  { apply le_IZR. rewrite abs_IZR, (IZR_Zpower radix2) by lia.
    apply Rmult_le_reg_r with (two e); [apply bpow_gt_0|].
    rewrite <- bpow_plus. rewrite Rabs_mult, (Rabs_pos_eq (two e)) in Hb; [exact Hb|apply bpow_ge_0]. }
  destruct (Z_lt_le_dec (Z.abs n) (2 ^ bits F)) as [H|H]; [now exists n, e|].
  exists (Z.sgn n), (bits F + e)%Z. split; [lia|]. split.
  - rewrite bpow_plus, <- Rmult_assoc. f_equal.
    rewrite <- (IZR_Zpower radix2) by lia. rewrite <- mult_IZR. f_equal. simpl. lia.
  - assert (1 < 2 ^ bits F)%Z by (apply Z.pow_gt_1; lia). lia.
Qed.

Lemma two_succ e : two (e + 1) = 2 * two e.
Proof. rewrite bpow_plus. change (two 1) with 2. lra. Qed.

Section IEEE.
Variable F : format.
Hypothesis positive : Prec_gt_0 (bits F).

Lemma holds_FLT x : holds F x -> generic_format radix2 (FLT_exp (least F) (bits F)) x.
Proof.
  intros H. destruct (holds_significand F x positive H) as (n & e & He & -> & Hn).
  apply generic_format_FLT. now exists (Float radix2 n e).
Qed.

(* Lemma of sums: its premise. With gradual underflow from 2^emin on, in any rounding mode. *)
Theorem ieee_keeps emin (mode : R -> Z) {valid : Valid_rnd mode} :
  (emin <= least F)%Z -> keeps F (round radix2 (FLT_exp emin (bits F)) mode).
Proof.
  intros H x Hx. apply round_generic; [exact valid|].
  destruct (holds_significand F x positive Hx) as (n & e & He & -> & Hn).
  apply generic_format_FLT. exists (Float radix2 n e); simpl; [reflexivity|exact Hn|lia].
Qed.

(* With everything below 2^(emin + p - 1), the least normal number, flushed. *)
Theorem flushing_keeps emin (mode : R -> Z) {valid : Valid_rnd mode} :
  (emin + bits F - 1 <= least F)%Z -> keeps F (round radix2 (FTZ_exp emin (bits F)) mode).
Proof.
  intros H x Hx. destruct (Req_dec x 0) as [->|H0]; [now apply round_0|].
  apply round_generic; [exact valid|]. apply generic_format_FTZ, FTZ_format_FLXN.
  - exact positive.
  - destruct Hx as (e & He & [n ->] & _).
    rewrite Rabs_mult, (Rabs_pos_eq (two e)) by apply bpow_ge_0.
    assert (1 <= Rabs (IZR n)).
    { rewrite <- abs_IZR. apply IZR_le. enough (n <> 0)%Z by lia. intros ->. lra. }
    apply Rle_trans with (two e); [apply bpow_le; lia|].
    rewrite <- (Rmult_1_l (two e)) at 1. apply Rmult_le_compat_r; [apply bpow_ge_0|assumption].
  - apply FLXN_format_generic; [exact positive|].
    destruct (holds_significand F x positive Hx) as (n & e & He & -> & Hn).
    apply generic_format_FLX. now exists (Float radix2 n e).
Qed.
End IEEE.

(* What holds less is kept by what holds more: an accumulator in float32 behind bfloat16. *)
Lemma wider_keeps F G rounding :
  (bits F <= bits G)%Z -> (least G <= least F)%Z -> largest F <= largest G -> keeps G rounding -> keeps F rounding.
Proof.
  intros Hb Hl Ht H x (e & He & Hm & Hx & Hm'). apply H. exists e.
  split; [lia|]. split; [exact Hm|]. split; [|lra].
  apply Rle_trans with (1 := Hx), bpow_le. lia.
Qed.

(* The three formats as torch has them, flushing or not. *)
Example float32_rounds_to_nearest : keeps float32 (round radix2 (FLT_exp (-149) 24) ZnearestE).
Proof. apply (ieee_keeps float32); simpl; try lia; try apply valid_rnd_N; now unfold Prec_gt_0. Qed.

Example float32_flushes : keeps float32 (round radix2 (FTZ_exp (-149) 24) ZnearestE).
Proof. apply (flushing_keeps float32); simpl; try lia; try apply valid_rnd_N; now unfold Prec_gt_0. Qed.

Example bfloat16_flushes : keeps bfloat16 (round radix2 (FTZ_exp (-133) 8) ZnearestE).
Proof. apply (flushing_keeps bfloat16); simpl; try lia; try apply valid_rnd_N; now unfold Prec_gt_0. Qed.

Example float16_rounds_to_nearest : keeps float16 (round radix2 (FLT_exp (-24) 11) ZnearestE).
Proof. apply (ieee_keeps float16); simpl; try lia; try apply valid_rnd_N; now unfold Prec_gt_0. Qed.

(* Lemma of sums: its range is not one bit larger. *)
Theorem one_bit_more_is_not_kept :
  ~ keeps (Format 25 (-126) (two 127)) (round radix2 (FLT_exp (-149) 24) ZnearestE).
Proof.
  intros K. set (x := IZR (2 ^ 24 + 1)).
  assert (H : holds (Format 25 (-126) (two 127)) x).
  { exists 0%Z. simpl. unfold x. rewrite Rabs_pos_eq by (apply IZR_le; lia). split; [lia|].
    split; [exists (2 ^ 24 + 1)%Z; simpl; ring|]. split; [change (two (25 + 0)) with (IZR (2 ^ 25)); apply IZR_le; lia|].
    change (two 127) with (IZR (2 ^ 127)). apply IZR_le. lia. }
  specialize (K x H).
  assert (G : generic_format radix2 (FLT_exp (-149) 24) x).
  { rewrite <- K. apply generic_format_round; [apply FLT_exp_valid; reflexivity|apply valid_rnd_N]. }
  apply FLT_format_generic in G; [|reflexivity]. destruct G as [[m e] E B _]. simpl in B. unfold F2R in E. simpl in E.
  destruct (Z_le_gt_dec e 0) as [L|L].
  - assert (A : Rabs x <= IZR (Z.abs m)).
    { rewrite E, Rabs_mult, <- abs_IZR, (Rabs_pos_eq (bpow radix2 e)) by apply bpow_ge_0.
      rewrite <- (Rmult_1_r (IZR (Z.abs m))) at 2. apply Rmult_le_compat_l; [apply IZR_le; lia|].
      change 1 with (two 0). now apply bpow_le. }
    unfold x in A. rewrite Rabs_pos_eq in A by (apply IZR_le; lia). apply le_IZR in A. lia.
  - unfold x in E. rewrite <- (IZR_Zpower radix2), <- mult_IZR in E by lia. apply eq_IZR in E.
    replace e with (1 + (e - 1))%Z in E by lia. rewrite Z.pow_add_r in E by lia. simpl radix_val in E. lia.
Qed.
