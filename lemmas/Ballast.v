(* The premise of the lemma of norms from what verify/checker/arithmetic/norms.py computes, in float32. *)

From Coq Require Import ZArith Reals List Permutation Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats Sums Norms.
Import ListNotations.
Open Scope R_scope.

(* Powers of two that add up to a power of two: with a term 2^0 there are more than N of them in 2^N. *)
Definition psum (l : list nat) : nat := fold_right (fun a s => (2 ^ a + s)%nat) O l.

Lemma psum_permuted l m : Permutation l m -> psum l = psum m.
Proof. induction 1; simpl; lia. Qed.

Lemma psum_halved l : ~ In O l -> psum l = (2 * psum (map Nat.pred l))%nat.
Proof.
  induction l as [|[|a] l IH]; intros H; [reflexivity|destruct H; now left|].
  simpl map. cbn [psum fold_right]. fold (psum l). rewrite IH by (intros I; apply H; now right).
  fold (psum (map Nat.pred l)). simpl. lia.
Qed.

Lemma powers_add_up n : forall l N, length l = n -> In O l -> psum l = (2 ^ N)%nat -> (N < n)%nat.
Proof.
  induction n as [|n IH]; intros l N L I S; [destruct l; [contradiction|discriminate]|].
  destruct N as [|N]; [lia|].
  destruct (in_split _ _ I) as (a & b & ->). set (l' := a ++ b).
  assert (P : Permutation (a ++ O :: b) (O :: l')) by (apply Permutation_sym, Permutation_middle).
  rewrite (psum_permuted _ _ P) in S. rewrite (Permutation_length P) in L. injection L as L. cbn in S. fold (psum l') in S.
  destruct (in_dec Nat.eq_dec O l') as [I'|I']; [|rewrite (psum_halved l' I') in S; lia].
  destruct (in_split _ _ I') as (c & d & E). set (m := c ++ d).
  assert (Q : Permutation l' (O :: m)) by (rewrite E; apply Permutation_sym, Permutation_middle).
  rewrite (psum_permuted _ _ Q) in S. rewrite (Permutation_length Q) in L. cbn in S, L. fold (psum m) in S.
  destruct (in_dec Nat.eq_dec O m) as [Im|Im].
  - enough (Datatypes.S N < n)%nat by lia. apply (IH (1%nat :: m)); [exact L|now right|]. cbn. fold (psum m). lia.
  - rewrite (psum_halved m Im) in S. enough (N < n)%nat by lia.
    apply (IH (map Nat.pred (1%nat :: m))); [simpl; now rewrite map_length|now left|]. cbn. fold (psum (map Nat.pred m)). lia.
Qed.

Lemma least_of (l : list Z) : l <> [] -> exists a, In a l /\ forall b, In b l -> (a <= b)%Z.
Proof.
  induction l as [|a l IH]; [easy|]. intros _. destruct l as [|b l].
  - exists a. split; [now left|]. intros b [<-|[]]. lia.
  - destruct IH as (c & I & H); [easy|]. destruct (Z_le_gt_dec a c).
    + exists a. split; [now left|]. intros d [<-|Hd]; [lia|]. specialize (H d Hd). lia.
    + exists c. split; [now right|]. intros d [<-|Hd]; [lia|now apply H].
Qed.

Lemma sum_of_powers a l : (forall b, In b l -> (a <= b)%Z) ->
  sum (map two l) = INR (psum (map (fun b => Z.to_nat (b - a)) l)) * two a.
Proof.
  induction l as [|b l IH]; intros H; [simpl; ring|].
  simpl map. cbn [psum fold_right]. fold (psum (map (fun b => Z.to_nat (b - a)) l)).
  cbn [sum fold_right]. fold (sum (map two l)). rewrite IH by (intros c Hc; apply H; now right).
  rewrite plus_INR, pow_INR. simpl (INR 2). specialize (H b (or_introl eq_refl)).
  replace (two b) with ((1 + 1) ^ Z.to_nat (b - a) * two a); [ring|].
  replace (two b) with (two ((b - a) + a)) by (f_equal; lia). rewrite bpow_plus. f_equal.
  rewrite <- (Z2Nat.id (b - a)) at 2 by lia. rewrite bpow_powerRZ. rewrite <- pow_powerRZ. reflexivity.
Qed.

Lemma sum_pos_part l m : part l m -> (forall x, In x m -> 0 <= x) -> 0 <= sum l <= sum m.
Proof.
  intros (o & P) H. rewrite <- (sum_permuted _ _ P), sum_app.
  assert (A : forall k, incl k m -> 0 <= sum k).
  { induction k as [|x k IH]; intros I; simpl; [lra|]. pose proof (H x (I x (or_introl eq_refl))).
    assert (0 <= sum k) by (apply IH; intros y Hy; apply I; now right). lra. }
  assert (0 <= sum l) by (apply A; intros x Hx; apply (Permutation_in x P), in_or_app; auto).
  assert (0 <= sum o) by (apply A; intros x Hx; apply (Permutation_in x P), in_or_app; auto). lra.
Qed.

(* Lemma of norms: every part of at most p powers of two whose sum is one is a float. *)
Theorem parts_are_floats emin p exponents n l :
  Prec_gt_0 p -> (Z.of_nat (length exponents) <= p)%Z -> (forall a, In a exponents -> (emin <= a)%Z) ->
  sum (map two exponents) = two n -> part l (map two exponents) ->
  generic_format radix2 (FLT_exp emin p) (sum l) /\ 0 <= sum l.
Proof.
  intros Hp L E S P. pose proof (sum_pos_part l _ P) as B.
  assert (Q : forall x, In x (map two exponents) -> 0 <= x).
  { intros x Hx. apply in_map_iff in Hx as (a & <- & _). apply bpow_ge_0. }
  specialize (B Q). split; [|apply B].
  destruct exponents as [|a0 exponents'] eqn:X.
  { destruct P as (o & P). apply Permutation_sym, Permutation_nil, app_eq_nil in P as [-> _]. apply generic_format_0. }
  rewrite <- X in *. destruct (least_of exponents) as (a & Ia & Ha); [now rewrite X|].
  rewrite (sum_of_powers a exponents Ha) in S.
  set (N := Z.to_nat (n - a)).
  assert (An : (a <= n)%Z).
  { apply (le_bpow radix2). rewrite <- S. rewrite <- (Rmult_1_l (two a)) at 1. apply Rmult_le_compat_r; [apply bpow_ge_0|].
    change 1 with (INR 1). apply le_INR. clear - Ia. induction exponents as [|b l IH]; [contradiction|].
    cbn. fold (psum (map (fun b => Z.to_nat (b - a)) l)). destruct Ia as [->|I]; [|specialize (IH I); lia].
    rewrite Z.sub_diag. simpl. lia. }
  assert (EN : psum (map (fun b => Z.to_nat (b - a)) exponents) = (2 ^ N)%nat).
  { apply INR_eq. rewrite pow_INR. simpl (INR 2). apply Rmult_eq_reg_r with (two a); [|apply Rgt_not_eq, bpow_gt_0].
    rewrite S. replace (two n) with (two ((n - a) + a)) by (f_equal; lia). rewrite bpow_plus. f_equal.
    unfold N. rewrite <- (Z2Nat.id (n - a)) at 1 by lia. rewrite bpow_powerRZ, <- pow_powerRZ. reflexivity. }
  assert (LN : (N < length exponents)%nat).
  { apply (powers_add_up _ (map (fun b => Z.to_nat (b - a)) exponents)); [now rewrite map_length| |exact EN].
    apply in_map_iff. exists a. split; [lia|exact Ia]. }
  assert (M : multiple a (sum l)).
  { apply sum_multiple. intros x Hx. destruct P as (o & P).
    assert (I : In x (map two exponents)) by (apply (Permutation_in x P), in_or_app; auto).
    apply in_map_iff in I as (b & <- & Ib). apply (multiple_finer b a); [now apply Ha|]. exists 1%Z. ring. }
  destruct M as (z & Hz). rewrite Hz in *. apply generic_format_FLT. exists (Float radix2 z a); [reflexivity| |now apply E].
  simpl. apply lt_IZR. rewrite abs_IZR, (IZR_Zpower radix2) by (unfold Prec_gt_0 in Hp; lia).
  apply Rmult_lt_reg_r with (two a); [apply bpow_gt_0|]. rewrite <- bpow_plus.
  rewrite Rabs_pos_eq by (apply Rmult_le_reg_r with (two a); [apply bpow_gt_0|lra]).
  apply Rle_lt_trans with (two n).
  - rewrite <- S. rewrite <- (sum_of_powers a exponents Ha). apply B.
  - apply bpow_lt. unfold N in LN. lia.
Qed.

(* Rounding adds less than the checker's factor 1 + width/2^20 leaves. *)
Lemma rounded_power u n : 0 <= u -> 2 * INR n * u <= 1 -> (1 + u) ^ n <= 1 + 2 * INR n * u.
Proof.
  intros U. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. intros H.
  assert (2 * INR n * u <= 1) by lra. specialize (IH H0). simpl. pose proof (pos_INR n).
  assert ((1 + u) * (1 + u) ^ n <= (1 + u) * (1 + 2 * INR n * u)) by (apply Rmult_le_compat_l; lra).
  assert (u * (2 * INR n * u) <= u * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Theorem slack width k most half :
  1 <= INR width <= two 20 -> (k <= 2 * width)%nat -> 0 <= most ->
  most * (1 + INR width * two (-20)) < half -> two (-100) <= half ->
  (1 + / 2 * two (- 24 + 1)) ^ k * (most + INR k * (/ 2 * two (-149))) < half.
Proof.
  intros [W1 W] K M H Hh. apply le_INR in K. rewrite mult_INR in K. simpl (INR 2) in K.
  set (w := INR width) in *. set (n := INR k) in *. assert (N : 0 <= n) by apply pos_INR.
  replace (/ 2 * two (- 24 + 1)) with (two (-24)) by (simpl; lra).
  replace (/ 2 * two (-149)) with (two (-150)) by (simpl; lra).
  assert (U : two (-24) * two 20 = two (-4)) by (rewrite <- bpow_plus; reflexivity).
  pose proof (bpow_gt_0 radix2 (-24)) as P24. pose proof (bpow_gt_0 radix2 (-150)) as P150.
  assert (Pn : (1 + two (-24)) ^ k <= 1 + 4 * w * two (-24)).
  { apply Rle_trans with (1 + 2 * n * two (-24)).
    - apply rounded_power; [lra|]. fold n. assert (n * two (-24) <= 2 * two 20 * two (-24)) by (apply Rmult_le_compat_r; lra).
      simpl in *. lra.
    - assert (n * two (-24) <= 2 * w * two (-24)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (E : 4 * w * two (-24) = w * two (-22)) by (simpl; lra).
  assert (E2 : two (-20) = 4 * two (-22)) by (simpl; lra).
  assert (Q : (1 + two (-24)) ^ k * (most + n * two (-150)) <= (1 + w * two (-22)) * (most + 2 * w * two (-150))).
  { apply Rmult_le_compat.
    - apply pow_le. lra.
    - assert (0 <= n * two (-150)) by (apply Rmult_le_pos; lra). lra.
    - lra.
    - assert (n * two (-150) <= 2 * w * two (-150)) by (apply Rmult_le_compat_r; lra). lra. }
  apply Rle_lt_trans with (1 := Q). clear Q Pn.
  assert (S2 : w * two (-22) <= / 4).
  { assert (w * two (-22) <= two 20 * two (-22)) by (apply Rmult_le_compat_r; [apply bpow_ge_0|lra]). simpl in *. lra. }
  assert (S3 : (1 + w * two (-22)) * (2 * w * two (-150)) <= 3 * (w * two (-150))).
  { assert (0 <= w * two (-150)) by (apply Rmult_le_pos; lra).
    assert (w * two (-22) * (w * two (-150)) <= / 4 * (w * two (-150))) by (apply Rmult_le_compat_r; lra). lra. }
  destruct (Rle_dec (two (-120)) most) as [C|C].
  - assert (w * two (-150) <= most * (w * two (-22))).
    { apply Rle_trans with (two (-120) * (w * two (-22))).
      - replace (two (-120) * (w * two (-22))) with (w * two (-142)).
        + apply Rmult_le_compat_l; [lra|]. apply bpow_le. lia.
        + change (-142)%Z with (-120 + -22)%Z. rewrite bpow_plus. ring.
      - apply Rmult_le_compat_r; [|exact C]. apply Rmult_le_pos; [lra|apply bpow_ge_0]. }
    rewrite E2 in H. lra.
  - apply Rnot_le_lt in C.
    assert (w * two (-150) <= two (-130)).
    { change (-130)%Z with (20 + -150)%Z. rewrite bpow_plus. apply Rmult_le_compat_r; [lra|exact (proj2 (conj W1 W))]. }
    assert (most * (w * two (-22)) <= most * / 4) by (apply Rmult_le_compat_l; lra).
    assert (two (-120) * 1024 <= two (-100)) by (change 1024 with (two 10); rewrite <- bpow_plus; apply bpow_le; lia).
    assert (two (-130) <= two (-120)) by (apply bpow_le; lia). lra.
Qed.

(* So the checker's test is the premise: `half` is its half step, of every sum of some of the constants. *)
Theorem ballast_hides choice t exponents n width :
  bigs t = map two exponents -> (length exponents <= 4)%nat -> (forall a, In a exponents -> (-149 <= a)%Z) ->
  sum (bigs t) = two n -> 1 <= INR width <= two 20 -> (roundings t <= 2 * width)%nat ->
  (forall l, part l (bigs t) -> l <> [] ->
    two (-100) <= / 2 * ulp radix2 (FLT_exp (-149) 24) (sum l) /\
    rest t * (1 + INR width * two (-20)) < / 2 * ulp radix2 (FLT_exp (-149) 24) (sum l)) ->
  bigs t <> [] -> run (-149) 24 choice t = two n.
Proof.
  intros B L E S W K H N. rewrite <- S. apply sum_of_squares; [reflexivity| |exact N].
  intros l P Nl. rewrite B in P, S. destruct (parts_are_floats (-149) 24 exponents n l) as [F Pl]; try assumption.
  - reflexivity.
  - lia.
  - split; [exact F|]. split; [exact Pl|]. rewrite <- B in P. destruct (H l P Nl) as [H1 H2].
    apply (slack width); try assumption. apply rest_pos.
Qed.
