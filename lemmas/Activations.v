(* silu, softplus and exp as a library computes them, from the facts that tests/runtime/test_floats.py measures. *)

From Coq Require Import ZArith Reals Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats.
Open Scope R_scope.

Definition relu (x : R) : R := Rmax x 0.

(* What is stated of the three functions (docs/proofs.md, "What it rests on", 2). decay x is exp(-x). *)
Record saturates (silu softplus decay : R -> R) : Prop := Saturates {
  silu_on : forall x, 20 < x -> silu x = x;
  silu_off : forall x, x <= -104 -> silu x = 0;
  silu_zero : silu 0 = 0;
  softplus_on : forall x, 20 < x -> softplus x = x;
  softplus_off : forall x, x <= -104 -> softplus x = 0;
  decay_kept : forall x, 0 <= x <= two (-26) -> decay x = 1;
  decay_erased : forall x, 104 <= x -> decay x = 0 }.

Section Activations.
Variables silu softplus decay : R -> R.
Hypothesis facts : saturates silu softplus decay.

(* Lemma of activations: on safe values silu and softplus are relu. *)
Theorem silu_is_relu x : x = 0 \/ 20 < x \/ x <= -104 -> silu x = relu x.
Proof.
  unfold relu. intros [->|[H|H]].
  - rewrite (silu_zero _ _ _ facts), Rmax_left; lra.
  - rewrite (silu_on _ _ _ facts _ H), Rmax_left; lra.
  - rewrite (silu_off _ _ _ facts _ H), Rmax_right; lra.
Qed.

Theorem softplus_is_relu x : 20 < x \/ x <= -104 -> softplus x = relu x.
Proof.
  unfold relu. intros [H|H].
  - rewrite (softplus_on _ _ _ facts _ H), Rmax_left; lra.
  - rewrite (softplus_off _ _ _ facts _ H), Rmax_right; lra.
Qed.

(* A signed number in two channels, and a signed product behind two gates. *)
Theorem signed_lanes x : x = 0 \/ 104 <= Rabs x -> silu x - silu (- x) = x.
Proof.
  intros H. assert (C : x = 0 \/ 104 <= x \/ x <= -104).
  { destruct H as [H|H]; [now left|right]. revert H. unfold Rabs. destruct (Rcase_abs x); lra. }
  rewrite !silu_is_relu by lra. unfold relu.
  destruct (Rle_dec 0 x); [rewrite Rmax_left, Rmax_right|rewrite Rmax_right, Rmax_left]; lra.
Qed.

Theorem signed_products y z : z = 0 \/ 104 <= Rabs z -> y * silu z - y * silu (- z) = y * z.
Proof. intros H. rewrite <- Rmult_minus_distr_l. now rewrite signed_lanes. Qed.

(* Lemma of decay: the exponent Δ·|A| is itself rounded, but rounding is monotone and the two limits are floats. *)
Theorem keeps_exactly F r step rate :
  keeps F r -> (forall x y, x <= y -> r x <= r y) -> holds F (two (-26)) -> holds F 0 ->
  0 <= step * rate <= two (-26) -> decay (r (step * rate)) = 1.
Proof.
  intros K M H H0 [L U]. apply (decay_kept _ _ _ facts). rewrite <- (K _ H), <- (K _ H0). split; now apply M.
Qed.

(* loss is what a huge step may have lost to rounding: 0, or 2^-7 of it where Δ is a small plus a huge number. *)
Theorem erases_exactly F r step rounded rate loss :
  keeps F r -> (forall x y, x <= y -> r x <= r y) -> holds F 104 ->
  0 <= rate -> step * (1 - loss) <= rounded -> 104 <= step * rate * (1 - loss) -> decay (r (rounded * rate)) = 0.
Proof.
  intros K M H Hr Hs L. apply (decay_erased _ _ _ facts). rewrite <- (K _ H). apply M.
  apply Rle_trans with (1 := L). replace (step * rate * (1 - loss)) with (step * (1 - loss) * rate) by ring.
  now apply Rmult_le_compat_r.
Qed.

(* The exponents of a chunk are added before exp: each is 0 or erases, and so is their sum. *)
Theorem decays_of_a_chunk x y : x = 0 \/ 104 <= x -> y = 0 \/ 104 <= y ->
  (x + y = 0 \/ 104 <= x + y) /\ decay (x + y) = decay x * decay y.
Proof.
  pose proof (bpow_ge_0 radix2 (-26)).
  assert (D0 : decay 0 = 1) by (apply (decay_kept _ _ _ facts); lra).
  intros [->|Hx] [->|Hy]; (split; [lra|]).
  - rewrite Rplus_0_r, D0. ring.
  - rewrite Rplus_0_l, D0. ring.
  - rewrite Rplus_0_r, D0. ring.
  - rewrite !(decay_erased _ _ _ facts) by lra. ring.
Qed.
End Activations.

(* Lemma of decay: |A| = exp(A_log), as float32 computes it and as a checker in float64 does. Where float32 has all its
   digits, it is right to 2^-17 and float64 to 2^-52, so the two are within 2^-16 of each other. *)
Theorem bounds_on_the_rate truth single double : 0 < truth ->
  Rabs (single - truth) <= two (-17) * truth -> Rabs (double - truth) <= two (-52) * truth ->
  double * (1 - two (-16)) <= single <= double * (1 + two (-16)).
Proof.
  intros T S D. apply Rabs_le_inv in S. apply Rabs_le_inv in D.
  assert (E : two (-16) = 2 * two (-17)) by (change (-16)%Z with (1 + -17)%Z; rewrite bpow_plus; simpl; lra).
  assert (H : two (-52) * 4 <= two (-17)) by (change 4 with (two 2); rewrite <- bpow_plus; apply bpow_le; lia).
  assert (P : 0 < two (-17) <= / 4) by (split; [apply bpow_gt_0|replace (/ 4) with (two (-2)) by (simpl; lra); apply
    bpow_le; lia]).
  pose proof (bpow_gt_0 radix2 (-52)). rewrite E. set (a := two (-17)) in *. set (b := two (-52)) in *.
  assert (0 <= b * truth) by (apply Rmult_le_pos; lra). assert (b * truth * 4 <= a * truth) by nra.
  assert (0 <= a * truth) by (apply Rmult_le_pos; lra).
  assert (a * (truth - b * truth) <= a * double) by (apply Rmult_le_compat_l; lra).
  assert (a * double <= a * (truth + b * truth)) by (apply Rmult_le_compat_l; lra).
  assert (a * (b * truth) <= / 4 * (b * truth)) by (apply Rmult_le_compat_r; lra).
  split; lra.
Qed.

(* Where it underflows it is within a step of the least normal number, which no relative error bounds; or flushed to
  0. *)
Theorem bounds_on_a_rate_that_underflows truth single double : 0 < truth ->
  single = 0 \/ Rabs (single - truth) <= two (-17) * truth + two (-127) -> Rabs (double - truth) <= two (-52) * truth ->
  truth <= two (-125) -> 0 <= single -> 0 <= single <= double + two (-126).
Proof.
  intros T S D L P. split; [exact P|]. apply Rabs_le_inv in D. pose proof (bpow_gt_0 radix2 (-126)) as P126.
  assert (H : two (-52) * truth <= two (-142)).
  { apply Rle_trans with (two (-52) * two (-125)); [apply Rmult_le_compat_l; [apply bpow_ge_0|exact L]|].
    rewrite <- bpow_plus. apply bpow_le. lia. }
  assert (H17 : two (-17) * truth <= two (-142)).
  { apply Rle_trans with (two (-17) * two (-125)); [apply Rmult_le_compat_l; [apply bpow_ge_0|exact L]|].
    rewrite <- bpow_plus. apply bpow_le. lia. }
  assert (E : two (-126) = 2 * two (-127)) by (change (-126)%Z with (1 + -127)%Z; rewrite bpow_plus; simpl; lra).
  assert (Q : two (-142) * 4 <= two (-127)) by (change 4 with (two 2); rewrite <- bpow_plus; apply bpow_le; lia).
  destruct S as [-> |S]; [lra|]. apply Rabs_le_inv in S. lra.
Qed.
