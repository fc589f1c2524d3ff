(* RMSNorm as the identity: constants so large that all other squares vanish beside them, in any order of the sum. *)

From Coq Require Import ZArith Reals List Permutation Lra Lia.
From Flocq Require Import Core Relative.
From Lemmas Require Import Formats Sums.
Import ListNotations.
Open Scope R_scope.

Section Norms.
Variable emin : Z.
Variable p : Z.
Context {positive : Prec_gt_0 p}.
Variable choice : Z -> bool.   (* how ties are broken *)
Notation fexp := (FLT_exp emin p).
Notation rnd := (round radix2 fexp (Znearest choice)).
Notation float := (generic_format radix2 fexp).

Let u := / 2 * two (- p + 1).   (* the relative error of one rounding *)
Let eta := / 2 * two emin.      (* the absolute one, of what underflows *)

(* How the squares of a vector are added: of the large constants and of the other lanes, in any bracketing, fused
   or not. *)
Inductive squares :=
  | Big (c : R)
  | Small (x : R)
  | Plus (s t : squares)
  | FusedBig (c : R) (t : squares)
  | FusedSmall (x : R) (t : squares).

Fixpoint run (t : squares) : R :=
  match t with
  | Big c => rnd (c * c)
  | Small x => rnd (x * x)
  | Plus s t => rnd (run s + run t)
  | FusedBig c t => rnd (c * c + run t)
  | FusedSmall x t => rnd (x * x + run t)
  end.

Fixpoint bigs (t : squares) : list R :=   (* the squares of the constants *)
  match t with
  | Big c => [c * c]
  | Small _ => []
  | Plus s t => bigs s ++ bigs t
  | FusedBig c t => c * c :: bigs t
  | FusedSmall _ t => bigs t
  end.

Fixpoint rest (t : squares) : R :=        (* the sum of all other squares *)
  match t with
  | Big _ => 0
  | Small x => x * x
  | Plus s t => rest s + rest t
  | FusedBig _ t => rest t
  | FusedSmall x t => x * x + rest t
  end.

Fixpoint roundings (t : squares) : nat :=
  match t with
  | Big _ | Small _ => 1
  | Plus s t => roundings s + roundings t + 1
  | FusedBig _ t | FusedSmall _ t => roundings t + 1
  end.

(* What the other squares can be computed as, at most. *)
Definition spoiled (t : squares) : R := (1 + u) ^ roundings t * (rest t + INR (roundings t) * eta).

Lemma u_pos : 0 <= u.
Proof. unfold u. pose proof (bpow_ge_0 radix2 (- p + 1)). lra. Qed.

Lemma eta_pos : 0 <= eta.
Proof. unfold eta. pose proof (bpow_ge_0 radix2 emin). lra. Qed.

Lemma rest_pos t : 0 <= rest t.
Proof. induction t; simpl; try nra. Qed.

Lemma rounded_pos x : 0 <= x -> 0 <= rnd x.
Proof. intros H. rewrite <- (round_0 radix2 fexp (Znearest choice)). now apply round_le; try typeclasses eauto. Qed.

Lemma rounded_at_most x : 0 <= x -> rnd x <= (1 + u) * x + eta.
Proof.
  intros H. destruct (error_N_FLT radix2 emin p positive choice x) as (e & h & He & Hh & _ & ->).
  apply Rabs_le_inv in He. apply Rabs_le_inv in Hh.
  assert (x * e <= x * u) by (apply Rmult_le_compat_l; [exact H|apply He]). unfold eta. lra.
Qed.

Lemma power_least n : 1 <= (1 + u) ^ n.
Proof. apply pow_R1_Rle. pose proof u_pos. lra. Qed.

Lemma step_up n x y : 0 <= x -> rnd x <= (1 + u) * x + eta -> x <= (1 + u) ^ n * (y + INR n * eta) -> 0 <= y ->
  rnd x <= (1 + u) ^ (n + 1) * (y + INR (n + 1) * eta).
Proof.
  intros Hx Hr H Hy. apply Rle_trans with (1 := Hr). rewrite pow_add, plus_INR, pow_1. simpl (INR 1).
  pose proof u_pos. pose proof eta_pos. pose proof (power_least n).
  assert (eta <= (1 + u) ^ n * (1 + u) * eta).
  { rewrite <- (Rmult_1_l eta) at 1. apply Rmult_le_compat_r; [assumption|].
    pose proof (Rmult_le_compat 1 ((1 + u) ^ n) 1 (1 + u)). lra. }
  assert ((1 + u) * x <= (1 + u) * ((1 + u) ^ n * (y + INR n * eta))) by (apply Rmult_le_compat_l; lra).
  replace ((1 + u) ^ n * (1 + u) * (y + (INR n + 1) * eta))
    with ((1 + u) * ((1 + u) ^ n * (y + INR n * eta)) + (1 + u) ^ n * (1 + u) * eta) by ring. lra.
Qed.

Lemma power_mono n m : (n <= m)%nat -> (1 + u) ^ n <= (1 + u) ^ m.
Proof. intros H. apply Rle_pow; [pose proof u_pos; lra|exact H]. Qed.

Lemma wider n m y : (n <= m)%nat -> 0 <= y -> (1 + u) ^ n * (y + INR n * eta) <= (1 + u) ^ m * (y + INR m * eta).
Proof.
  intros H Hy. pose proof (power_least n). pose proof eta_pos. apply le_INR in H as HI. pose proof (pos_INR n).
  apply Rmult_le_compat; [lra| |now apply power_mono|].
  - assert (0 <= INR n * eta) by now apply Rmult_le_pos. lra.
  - assert (INR n * eta <= INR m * eta) by now apply Rmult_le_compat_r. lra.
Qed.

Lemma run_pos t : 0 <= run t.
Proof. induction t; simpl; apply rounded_pos; nra. Qed.

Lemma spoiled_at_most t : bigs t = [] -> run t <= spoiled t.
Proof.
  unfold spoiled. pose proof u_pos as U. pose proof eta_pos as E.
  induction t as [c|x|s IHs t IHt|c t IH|x t IH]; simpl bigs; intros N; try discriminate; cbn [run rest roundings].
  - pose proof (rounded_at_most (x * x) ltac:(nra)) as H. simpl. nra.
  - apply app_eq_nil in N as [Ns Nt]. specialize (IHs Ns). specialize (IHt Nt).
    pose proof (run_pos s). pose proof (run_pos t). pose proof (rest_pos s). pose proof (rest_pos t).
    apply step_up; [lra|apply rounded_at_most; lra| |lra].
    assert (A : (1 + u) ^ roundings s <= (1 + u) ^ (roundings s + roundings t)) by (apply power_mono; lia).
    assert (B : (1 + u) ^ roundings t <= (1 + u) ^ (roundings s + roundings t)) by (apply power_mono; lia).
    rewrite plus_INR. pose proof (pos_INR (roundings s)). pose proof (pos_INR (roundings t)).
    assert (0 <= INR (roundings s) * eta) by now apply Rmult_le_pos.
    assert (0 <= INR (roundings t) * eta) by now apply Rmult_le_pos.
    apply (Rmult_le_compat_r (rest s + INR (roundings s) * eta)) in A; [|lra].
    apply (Rmult_le_compat_r (rest t + INR (roundings t) * eta)) in B; [|lra]. lra.
  - specialize (IH N). pose proof (run_pos t). pose proof (rest_pos t). assert (0 <= x * x) by nra.
    apply step_up; [lra|apply rounded_at_most; lra| |lra].
    pose proof (power_least (roundings t)). nra.
Qed.

(* Lemma of norms: s is not changed by what is below half a step of it. *)
Theorem absorbed s d : float s -> 0 <= s -> 0 <= d < / 2 * ulp radix2 fexp s -> rnd (s + d) = s.
Proof.
  intros F S [D0 D]. apply Rle_antisym.
  - apply round_N_le_midp; try assumption; try typeclasses eauto. rewrite succ_eq_pos by assumption. lra.
  - rewrite <- (round_generic radix2 fexp (Znearest choice) s F) at 1. apply round_le; try typeclasses eauto. lra.
Qed.

(* A part of the constants, in any order. *)
Definition part (l m : list R) : Prop := exists others, Permutation (l ++ others) m.

Lemma part_app_l l m n : part (l ++ m) n -> part l n.
Proof. intros (o & P). exists (m ++ o). now rewrite app_assoc. Qed.

Lemma part_app_r l m n : part (l ++ m) n -> part m n.
Proof.
  intros (o & P). exists (l ++ o). rewrite app_assoc. apply Permutation_trans with (2 := P).
  apply Permutation_app_tail, Permutation_app_comm.
Qed.

(* All parts of the constants' squares are floats, and hide what the rest can be computed as. *)
Definition hides (constants : list R) (most : R) : Prop :=
  forall l, part l constants -> l <> [] -> float (sum l) /\ 0 <= sum l /\ most < / 2 * ulp radix2 fexp (sum l).

Lemma small_part_of_sum constants most t : hides constants most -> part (bigs t) constants -> spoiled t <= most ->
  (bigs t = [] /\ run t <= most) \/ (bigs t <> [] /\ run t = sum (bigs t)).
Proof.
  intros H. unfold spoiled. pose proof u_pos as U. pose proof eta_pos as E.
  induction t as [c|x|s IHs t IHt|c t IH|x t IH]; intros P M.
  - right. split; [discriminate|]. simpl. rewrite Rplus_0_r. apply round_generic; try typeclasses eauto.
    destruct (H [c * c] P) as (F & _ & _); [discriminate|]. simpl in F. now rewrite Rplus_0_r in F.
  - left. split; [reflexivity|]. apply Rle_trans with (2 := M). now apply spoiled_at_most.
  - cbn [bigs rest roundings] in *. pose proof (rest_pos s) as Rs. pose proof (rest_pos t) as Rt.
    assert (Ms : (1 + u) ^ roundings s * (rest s + INR (roundings s) * eta) <= most).
    { apply Rle_trans with (2 := M). apply Rle_trans with
        ((1 + u) ^ roundings s * (rest s + rest t + INR (roundings s) * eta)).
      - apply Rmult_le_compat_l; [pose proof (power_least (roundings s))|]; lra.
      - apply wider; [lia|lra]. }
    assert (Mt : (1 + u) ^ roundings t * (rest t + INR (roundings t) * eta) <= most).
    { apply Rle_trans with (2 := M). apply Rle_trans with
        ((1 + u) ^ roundings t * (rest s + rest t + INR (roundings t) * eta)).
      - apply Rmult_le_compat_l; [pose proof (power_least (roundings t))|]; lra.
      - apply wider; [lia|lra]. }
    pose proof (run_pos s) as Ps. pose proof (run_pos t) as Pt.
    destruct (IHs (part_app_l _ _ _ P) Ms) as [[Ns Vs]|[Ns Vs]], (IHt (part_app_r _ _ _ P) Mt) as [[Nt Vt]|[Nt Vt]].
    + left. rewrite Ns, Nt. split; [reflexivity|]. apply Rle_trans with (2 := M).
      apply (spoiled_at_most (Plus s t)). simpl. now rewrite Ns, Nt.
    + right. rewrite Ns in *. split; [exact Nt|]. cbn [run]. rewrite Vt, Rplus_comm.
      destruct (H (bigs t) P Nt) as (F & S & L). apply absorbed; simpl in *; lra || assumption.
    + right. rewrite Nt, app_nil_r in *. split; [exact Ns|]. cbn [run]. rewrite Vs.
      destruct (H (bigs s) P Ns) as (F & S & L). apply absorbed; simpl in *; lra || assumption.
    + right. assert (N : bigs s ++ bigs t <> []) by (intros Z; apply app_eq_nil in Z; tauto). split; [exact N|].
      cbn [run]. rewrite Vs, Vt, <- sum_app. apply round_generic; try typeclasses eauto. now destruct (H _ P N).
  - cbn [bigs rest roundings] in *. right. split; [discriminate|]. pose proof (rest_pos t) as Rt.
    assert (Mt : (1 + u) ^ roundings t * (rest t + INR (roundings t) * eta) <= most).
    { apply Rle_trans with (2 := M). apply wider; [lia|lra]. }
    pose proof (run_pos t) as Pt.
    destruct (IH (part_app_r [c * c] _ _ P) Mt) as [[Nt Vt]|[Nt Vt]]; cbn [run].
    + rewrite Nt in *. destruct (H [c * c] P) as (F & S & L); [discriminate|]. simpl in *. rewrite Rplus_0_r in *.
      apply absorbed; lra || assumption.
    + rewrite Vt. destruct (H (c * c :: bigs t) P) as (F & _ & _); [discriminate|].
      apply round_generic; try typeclasses eauto. exact F.
  - cbn [bigs rest roundings] in *. pose proof (rest_pos t) as Rt. assert (0 <= x * x) by nra.
    assert (Mt : (1 + u) ^ roundings t * (rest t + INR (roundings t) * eta) <= most).
    { apply Rle_trans with (2 := M). apply Rle_trans with
        ((1 + u) ^ roundings t * (x * x + rest t + INR (roundings t) * eta)).
      - apply Rmult_le_compat_l; [pose proof (power_least (roundings t))|]; lra.
      - apply wider; [lia|lra]. }
    destruct (IH P Mt) as [[Nt Vt]|[Nt Vt]].
    + left. split; [exact Nt|]. apply Rle_trans with (2 := M). now apply (spoiled_at_most (FusedSmall x t)).
    + right. split; [exact Nt|]. cbn [run]. rewrite Vt, Rplus_comm. destruct (H (bigs t) P Nt) as (F & S & L).
      assert (x * x <= most).
      { apply Rle_trans with (2 := M). pose proof (power_least (roundings t + 1)). pose proof (pos_INR (roundings t + 1)).
        assert (0 <= INR (roundings t + 1) * eta) by now apply Rmult_le_pos. nra. }
      apply absorbed; lra || assumption.
Qed.

(* Lemma of norms: whatever the order, the sum of squares is that of the constants alone. *)
Theorem sum_of_squares t : hides (bigs t) (spoiled t) -> bigs t <> [] -> run t = sum (bigs t).
Proof.
  intros H N. assert (P : part (bigs t) (bigs t)) by (exists []; now rewrite app_nil_r).
  destruct (small_part_of_sum (bigs t) (spoiled t) t H P (Rle_refl _)) as [[Z _]|[_ E]]; [contradiction|exact E].
Qed.

(* The whole norm: width d = 2^j and Σ c² = K²·d for K = 2^k; rsqrt is right at powers of 4. *)
Theorem norms t k j epsilon rsqrt weight x :
  hides (bigs t) (spoiled t) -> bigs t <> [] -> sum (bigs t) = two (2 * k + j) ->
  (emin <= 2 * k)%Z -> 0 <= epsilon < / 2 * ulp radix2 fexp (two (2 * k)) ->
  rsqrt (two (2 * k)) = two (- k) -> float (x * two (- k)) -> float (weight * (x * two (- k))) ->
  rnd (weight * rnd (x * rsqrt (rnd (rnd (run t * two (- j)) + epsilon)))) = weight * x / two k.
Proof.
  intros H N S Hk He Hr Fx Fw. rewrite (sum_of_squares t H N), S, <- bpow_plus.
  replace (2 * k + j + - j)%Z with (2 * k)%Z by lia.
  assert (F : float (two (2 * k))) by now apply generic_format_FLT_bpow.
  rewrite (round_generic _ _ _ (two (2 * k)) F), absorbed, Hr; try assumption; [|apply bpow_ge_0].
  rewrite (round_generic _ _ _ (x * two (- k)) Fx), (round_generic _ _ _ _ Fw). rewrite bpow_opp. unfold Rdiv. ring.
Qed.

(* Lemma of lengths: rows of one level whose squares add up to 4^j become level/2^j. *)
Theorem lengths j epsilon rsqrt level :
  (emin <= 2 * j)%Z -> 0 <= epsilon < / 2 * ulp radix2 fexp (two (2 * j)) -> rsqrt (two (2 * j)) = two (- j) ->
  float (level * two (- j)) -> rnd (level * rsqrt (rnd (two (2 * j) + epsilon))) = level / two j.
Proof.
  intros Hj He Hr Fl. rewrite absorbed, Hr, (round_generic _ _ _ _ Fl), bpow_opp; try assumption; try reflexivity.
  - now apply generic_format_FLT_bpow.
  - apply bpow_ge_0.
Qed.

(* Rows that are 0 stay 0. *)
Theorem lengths_of_zeros epsilon rsqrt : rnd (0 * rsqrt (rnd (0 + epsilon))) = 0.
Proof. rewrite Rmult_0_l. now apply round_0; try typeclasses eauto. Qed.

(* In narrower formats a quotient is off by a relative error below 2^-(p+1). *)
Lemma undone_if_positive x d : float x -> 0 < x -> (emin + p <= mag radix2 x)%Z -> Rabs d < x * two (- p - 1) ->
  rnd (x + d) = x.
Proof.
  intros F X M H.
  assert (U : ulp radix2 fexp x = two (mag radix2 x - p)).
  { rewrite ulp_neq_0 by lra. unfold cexp. f_equal. unfold FLT_exp. lia. }
  assert (B : x < two (mag radix2 x)).
  { rewrite <- (Rabs_pos_eq x) at 1 by lra. apply bpow_mag_gt. }
  assert (P : two (mag radix2 x) * two (- p - 1) = / 2 * two (mag radix2 x - p)).
  { rewrite <- bpow_plus. replace (/ 2) with (two (-1)) by reflexivity. rewrite <- bpow_plus. f_equal. lia. }
  pose proof (bpow_gt_0 radix2 (- p - 1)) as Q.
  assert (Dh : x * two (- p - 1) <= / 2 * two (mag radix2 x - p)).
  { rewrite <- P. apply Rmult_le_compat_r; lra. }
  unfold Rabs in H. destruct (Rcase_abs d) as [N|N].
  - apply Rle_antisym.
    + rewrite <- (round_generic radix2 fexp (Znearest choice) x F) at 2. apply round_le; try typeclasses eauto. lra.
    + apply round_N_ge_midp; try assumption; try typeclasses eauto.
      rewrite pred_eq_pos by lra. unfold pred_pos. destruct (Req_bool_spec x (two (mag radix2 x - 1))) as [E|E].
      * assert (T : two (mag radix2 x - 1) * two (- p - 1) <= / 2 * two (fexp (mag radix2 x - 1))).
        { replace (/ 2) with (two (-1)) by reflexivity. rewrite <- !bpow_plus. apply bpow_le. unfold FLT_exp. lia. }
        rewrite <- E in T. lra.
      * rewrite U. lra.
  - apply absorbed; [exact F|lra|]. rewrite U. lra.
Qed.
End Norms.

(* Lemma of norms: such an error is undone by the rounding, if the number that should come out is one of the format and
   no underflow. *)
Theorem undone emin p (positive : Prec_gt_0 p) choice x off : generic_format radix2 (FLT_exp emin p) x ->
  (emin + p <= mag radix2 x)%Z -> x <> 0 -> Rabs (off - x) < Rabs x * two (- p - 1) ->
  round radix2 (FLT_exp emin p) (Znearest choice) off = x.
Proof.
  intros F M N H. destruct (Rlt_le_dec 0 x) as [X|X].
  - replace off with (x + (off - x)) by ring. apply undone_if_positive; try assumption. now rewrite (Rabs_pos_eq x) in
    H by lra.
  - rewrite (Rabs_left1 x) in H by lra. replace off with (- (- x + - (off - x))) by ring. rewrite round_N_opp.
    rewrite undone_if_positive; try assumption; try lra.
    + now apply generic_format_opp.
    + now rewrite mag_opp.
    + now rewrite Rabs_Ropp.
Qed.
