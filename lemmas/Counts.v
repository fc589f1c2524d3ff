(* Counts that outgrow the format. *)

From Coq Require Import ZArith Reals List Lra Lia.
From Flocq Require Import Core Relative.
From Lemmas Require Import Formats Sums Activations Perturbed.
Import ListNotations.
Open Scope R_scope.

Definition monotone (r : R -> R) : Prop := forall x y, x <= y -> r x <= r y.
Definition keeps_order (F : format) (r : R -> R) : Prop := keeps F r /\ monotone r.

Lemma nonnegative_sum l : (forall x, In x l -> 0 <= x) -> 0 <= sum l.
Proof.
  induction l as [|x l IH]; intros H; simpl; [lra|]. pose proof (H x (or_introl eq_refl)).
  assert (0 <= sum l) by (apply IH; intros y Hy; apply H; now right). lra.
Qed.

(* Lemma of counts that outgrow the format: in any order a sum of multiples ≥ 0 of a unit is exact up to 2^p units, and
   is computed as no less than these beyond. *)
Theorem counts F e t x :
  (0 <= bits F)%Z -> (least F <= e)%Z -> two (bits F + e) <= largest F ->
  (forall y, In y (terms t) -> 0 <= y /\ multiple e y) -> computed (keeps_order F) t x ->
  (sum (terms t) <= two (bits F + e) -> x = sum (terms t)) /\
  (two (bits F + e) < sum (terms t) -> two (bits F + e) <= x).
Proof.
  intros Hp He Hl H C. set (c := two (bits F + e)) in *.
  assert (T : holds F c).
  { exists e. split; [exact He|]. unfold c. rewrite Rabs_pos_eq by apply bpow_ge_0. split; [|split; [lra|exact Hl]].
    exists (2 ^ bits F)%Z. rewrite (IZR_Zpower radix2) by exact Hp. apply bpow_plus. }
  assert (N : forall s, 0 <= s <= c -> multiple e s -> holds F s).
  { intros s B M. exists e. rewrite Rabs_pos_eq by apply B. split; [exact He|]. split; [exact M|]. fold c. lra. }
  assert (M : forall l, (forall y, In y l -> 0 <= y /\ multiple e y) -> 0 <= sum l /\ multiple e (sum l)).
  { intros l Hy. split; [apply nonnegative_sum|apply sum_multiple]; intros y Iy; now apply Hy. }
  induction C as [r w v [K O]|r s t x y [K O] _ IHs _ IHt|r w v t y [K O] _ IH].
  - destruct (M _ H) as [M0 Mm]. simpl in *. rewrite Rplus_0_r in *. split; intros B.
    + apply K, N; [lra|exact Mm].
    + rewrite <- (K c T). apply O. lra.
  - destruct (M _ H) as [_ Mm]. cbn [terms] in *. rewrite sum_app in *.
    assert (Hs : forall y, In y (terms s) -> 0 <= y /\ multiple e y) by (intros z Hz; apply H, in_or_app; auto).
    assert (Ht : forall y, In y (terms t) -> 0 <= y /\ multiple e y) by (intros z Hz; apply H, in_or_app; auto).
    destruct (M _ Hs) as [S0 _], (M _ Ht) as [T0 _]. specialize (IHs Hs). specialize (IHt Ht).
    destruct IHs as [Sx Sc], IHt as [Tx Tc]. split; intros B.
    + rewrite Sx, Tx by lra. apply K, N; [lra|exact Mm].
    + rewrite <- (K c T). apply O.
      destruct (Rle_lt_dec (sum (terms s)) c) as [A|A], (Rle_lt_dec (sum (terms t)) c) as [D|D].
      * rewrite (Sx A), (Tx D). lra.
      * rewrite (Sx A). specialize (Tc D). lra.
      * rewrite (Tx D). specialize (Sc A). lra.
      * specialize (Sc A). specialize (Tc D). pose proof (bpow_ge_0 radix2 (bits F + e)) as P. fold c in P. lra.
  - destruct (M _ H) as [_ Mm]. cbn [terms] in *. cbn [sum fold_right] in *. fold (sum (terms t)) in *.
    assert (Ht : forall y, In y (terms t) -> 0 <= y /\ multiple e y) by (intros z Hz; apply H; now right).
    destruct (H (w * v) (or_introl eq_refl)) as [W0 _], (M _ Ht) as [T0 _]. destruct (IH Ht) as [Tx Tc]. split; intros B.
    + rewrite Tx by lra. apply K, N; [lra|exact Mm].
    + rewrite <- (K c T). apply O. destruct (Rle_lt_dec (sum (terms t)) c) as [D|D].
      * rewrite (Tx D). lra.
      * specialize (Tc D). lra.
Qed.

(* What reads such a count along a falling line K − w·c, which is at most −104 where the count is no longer exact, takes
   the exact value: 0 beyond. *)
Theorem falling_lines F r silu softplus decay level slope exact count computed_count :
  saturates silu softplus decay -> keeps_order F r -> slope <= 0 ->
  level + slope * exact <= -104 -> holds F (level + slope * exact) ->
  exact <= computed_count -> exact <= count ->
  silu (r (level + slope * computed_count)) = relu (level + slope * count) /\
  softplus (r (level + slope * computed_count)) = relu (level + slope * count).
Proof.
  intros S [K O] Hs Off T Hc Hn.
  assert (A : slope * computed_count <= slope * exact) by nra. assert (B : slope * count <= slope * exact) by nra.
  assert (D : r (level + slope * computed_count) <= -104) by (rewrite <- (K _ T) in Off; apply Rle_trans with (2 := Off), O; lra).
  unfold relu. rewrite Rmax_right by lra. split; [now apply (silu_off _ _ _ S)|now apply (softplus_off _ _ _ S)].
Qed.

(* How much more than the truth a count can be computed as. Rounded to the nearest number, adding y ≥ 0 to a number of
  the
   format adds at most 2y, since that number is at hand too. *)
Section Nearest.
Variables (emin p : Z).
Context {positive : Prec_gt_0 p}.
Variable choice : Z -> bool.
Notation fexp := (FLT_exp emin p).
Notation rnd := (round radix2 fexp (Znearest choice)).

Theorem adds_at_most_twice h y : generic_format radix2 fexp h -> 0 <= y -> rnd (h + y) <= h + 2 * y.
Proof.
  intros F Y. destruct (round_N_pt radix2 fexp choice (h + y)) as [_ N]. specialize (N h F).
  replace (h - (h + y)) with (- y) in N by ring. rewrite Rabs_Ropp, (Rabs_pos_eq y) in N by exact Y.
  apply Rabs_le_inv in N. lra.
Qed.

(* So a scan that adds one part after the other holds at most twice what the parts are; each part may come from a
  tree. *)
Theorem sequence_at_most_twice parts : (forall y, In y parts -> 0 <= y) ->
  fold_left (fun h y => rnd (h + y)) parts 0 <= 2 * sum parts.
Proof.
  intros H. enough (G : forall h, generic_format radix2 fexp h -> fold_left (fun h y => rnd (h + y)) parts h <= h + 2
    * sum parts).
  { specialize (G 0 (generic_format_0 _ _)). lra. }
  induction parts as [|y l IH]; intros h F; simpl; [lra|].
  assert (Fr : generic_format radix2 fexp (rnd (h + y))) by (apply generic_format_round; typeclasses eauto).
  specialize (IH (fun x Hx => H x (or_intror Hx)) _ Fr).
  pose proof (adds_at_most_twice h y F (H y (or_introl eq_refl))). lra.
Qed.
End Nearest.

(* A tree of depth at most 2^20 in float32: each rounding is by 2^-24 of what it rounds, so all of them by 1/15. *)
Fixpoint depth (t : order) : nat :=
  match t with Term _ _ => 1 | Add s t => S (Nat.max (depth s) (depth t)) | Fused _ _ t => S (depth t) end.

Definition by_at_most (u : R) (r : R -> R) : Prop := forall x, 0 <= x -> 0 <= r x <= (1 + u) * x.

Theorem tree_at_most u t x : 0 <= u -> (forall y, In y (terms t) -> 0 <= y) -> computed (by_at_most u) t x ->
  0 <= x <= (1 + u) ^ depth t * sum (terms t).
Proof.
  intros U H C.
  assert (M : forall n m, (n <= m)%nat -> (1 + u) ^ n <= (1 + u) ^ m) by (intros n m L; apply Rle_pow; [lra|exact L]).
  assert (S0 : forall l, (forall y, In y l -> 0 <= y) -> 0 <= sum l) by (intros l Hl; now apply nonnegative_sum).
  induction C as [r w v K|r s t x y K _ IHs _ IHt|r w v t y K _ IH]; cbn [terms depth] in *.
  - destruct (K (w * v)) as [A B]; [apply H; now left|]. simpl. split; [exact A|lra].
  - assert (Hs : forall y, In y (terms s) -> 0 <= y) by (intros z Hz; apply H, in_or_app; auto).
    assert (Ht : forall y, In y (terms t) -> 0 <= y) by (intros z Hz; apply H, in_or_app; auto).
    destruct (IHs Hs) as [X0 X], (IHt Ht) as [Y0 Y]. rewrite sum_app. destruct (K (x + y)) as [A B]; [lra|].
    split; [exact A|]. apply Rle_trans with (1 := B). simpl. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    pose proof (M _ _ (Nat.le_max_l (depth s) (depth t))). pose proof (M _ _ (Nat.le_max_r (depth s) (depth t))).
    pose proof (Rmult_le_compat_r _ _ _ (S0 _ Hs) H0). pose proof (Rmult_le_compat_r _ _ _ (S0 _ Ht) H1). lra.
  - assert (Ht : forall y, In y (terms t) -> 0 <= y) by (intros z Hz; apply H; now right).
    pose proof (H (w * v) (or_introl eq_refl)) as W. destruct (IH Ht) as [Y0 Y]. destruct (K (w * v + y)) as [A B];
      [lra|].
    split; [exact A|]. apply Rle_trans with (1 := B). cbn [sum fold_right]. fold (sum (terms t)). simpl. rewrite
      Rmult_assoc.
    apply Rmult_le_compat_l; [lra|]. pose proof (M 0%nat (depth t) ltac:(lia)) as P. simpl in P.
    pose proof (Rmult_le_compat_r _ _ _ W P). lra.
Qed.

(* All together: parts from trees of depth at most 2^20, added in sequence. *)
Theorem counts_at_most (parts : list (R * R)) choice (u := two (-24)) :
  (forall q, In q parts -> 0 <= snd q /\ 0 <= fst q <= (1 + u) ^ (2 ^ 20) * snd q) ->
  fold_left (fun h y => round radix2 (FLT_exp (-149) 24) (Znearest choice) (h + y)) (map fst parts) 0 <=
  32 / 15 * sum (map snd parts).
Proof.
  intros H.
  assert (P24 : Prec_gt_0 24) by reflexivity.
  assert (G : (1 + u) ^ (2 ^ 20) <= 16 / 15).
  { assert (N : INR (2 ^ 20) * u = / 16).
    { rewrite pow_INR. unfold u. simpl (INR 2). simpl two. lra. }
    assert (U : 0 <= u < 1) by (unfold u; simpl; lra). pose proof (gamma u U (2 ^ 20)) as Q. unfold grown in Q.
    rewrite N in Q. lra. }
  assert (E : sum (map fst parts) <= 16 / 15 * sum (map snd parts) /\ 0 <= sum (map snd parts)).
  { induction parts as [|q l IH]; simpl; [lra|]. destruct (H q (or_introl eq_refl)) as (Q0 & _ & Q).
    specialize (IH (fun r Hr => H r (or_intror Hr))). pose proof (Rmult_le_compat_r _ _ _ Q0 G). lra. }
  assert (F : fold_left (fun h y => round radix2 (FLT_exp (-149) 24) (Znearest choice) (h + y)) (map fst parts) 0 <= 2
    * sum (map fst parts)).
  { apply (sequence_at_most_twice (-149) 24 choice). intros y Hy. apply in_map_iff in Hy as (q & <- & Hq). now apply
    (H q Hq). }
  lra.
Qed.

(* A narrower format. What float32 has added, a number of the format and a part more, is cast to the format behind each
   step: rounded twice, it adds no more than 65/32 of the part. *)
Section Narrow.
Variables emin p : Z.
Context {positive : Prec_gt_0 p}.
Hypothesis narrower : (p <= 11 /\ -149 <= emin)%Z.
Variables choice choice32 : Z -> bool.
Notation fexp := (FLT_exp emin p).
Notation narrow := (round radix2 fexp (Znearest choice)).
Notation single := (round radix2 (FLT_exp (-149) 24) (Znearest choice32)).

Lemma narrow_is_single h : generic_format radix2 fexp h -> generic_format radix2 (FLT_exp (-149) 24) h.
Proof. apply generic_inclusion_mag. intros _. unfold FLT_exp. lia. Qed.

Theorem narrow_adds h y : generic_format radix2 fexp h -> 0 <= h -> y = 0 \/ two (-126) <= y ->
  narrow (single (h + y)) <= h + 65 / 32 * y.
Proof.
  intros F H Y.
  assert (P24 : Prec_gt_0 24) by reflexivity.
  assert (Y0 : 0 <= y) by (pose proof (bpow_ge_0 radix2 (-126)); destruct Y; lra).
  set (s := single (h + y)).
  assert (S : h <= s).
  { unfold s. rewrite <- (round_generic radix2 (FLT_exp (-149) 24) (Znearest choice32) h) at 1 by now apply narrow_is_single.
    apply round_le; [typeclasses eauto..|lra]. }
  destruct (Rle_lt_dec (s - h) (65 / 64 * y)) as [A|A].
  - pose proof (adds_at_most_twice emin p choice h (s - h) F ltac:(lra)) as T. replace (h + (s - h)) with s in T by ring. lra.
  - destruct Y as [Y|Y].
    { exfalso. unfold s in A. rewrite Y, Rplus_0_r, round_generic in A by (try typeclasses eauto; now apply narrow_is_single). lra. }
    assert (E : Rabs (s - (h + y)) <= / 2 * bpow radix2 (-24 + 1) * Rabs (h + y)).
    { unfold s. apply relative_error_N_FLT; [reflexivity|].
      change (-149 + 24 - 1)%Z with (-126)%Z. rewrite Rabs_pos_eq; lra. }
    rewrite (Rabs_pos_eq (h + y)) in E by lra. apply Rabs_le_inv in E.
    assert (D : bpow radix2 (-24 + 1) = / 8388608) by (simpl; lra). rewrite D in E.
    assert (N : narrow s <= h).
    { apply round_N_le_midp; [typeclasses eauto|exact F|]. rewrite succ_eq_pos by exact H.
      pose proof (ulp_FLT_gt radix2 emin p h) as U. rewrite (Rabs_pos_eq h) in U by exact H.
      assert (G : bpow radix2 (-11) <= bpow radix2 (-p)) by (apply bpow_le; lia).
      assert (G0 : bpow radix2 (-11) = / 2048) by (simpl; lra). rewrite G0 in G.
      pose proof (Rmult_le_compat_l h _ _ H G). lra. }
    lra.
Qed.

(* So a state that begins with what a prefill counts, cast to the format, and goes on by steps, holds at most 13/6 of
   what there is to count. *)
Theorem narrow_counts_at_most h first parts : generic_format radix2 fexp h ->
  0 <= h <= (1 + two (-8)) * (32 / 15 * first) -> (forall y, In y parts -> y = 0 \/ two (-126) <= y) ->
  fold_left (fun s y => narrow (single (s + y))) parts h <= 13 / 6 * (first + sum parts).
Proof.
  intros F [H0 H] Y.
  assert (E : two (-8) = / 256) by (unfold two; simpl; lra). rewrite E in H.
  enough (G : fold_left (fun s y => narrow (single (s + y))) parts h <= h + 65 / 32 * sum parts /\ 0 <= sum parts) by lra.
  clear H. revert h F H0. induction parts as [|y l IH]; intros h F H0; simpl; [lra|].
  assert (Yl : forall x, In x l -> x = 0 \/ two (-126) <= x) by (intros x Hx; apply Y; now right).
  assert (Y0 : 0 <= y) by (pose proof (bpow_ge_0 radix2 (-126)); destruct (Y y (or_introl eq_refl)); lra).
  assert (P24 : Prec_gt_0 24) by reflexivity.
  assert (N : 0 <= narrow (single (h + y))).
  { apply round_ge_generic; [typeclasses eauto..|apply generic_format_0|].
    apply round_ge_generic; [typeclasses eauto..|apply generic_format_0|lra]. }
  assert (Fr : generic_format radix2 fexp (narrow (single (h + y)))) by (apply generic_format_round; typeclasses eauto).
  destruct (IH Yl _ Fr N) as [A B]. pose proof (narrow_adds h y F H0 (Y y (or_introl eq_refl))). lra.
Qed.
End Narrow.

(* n roundings of a line, each by a part of u. *)
Theorem often_rounded n u : 0 <= u < 1 -> INR n * u < 1 -> (1 + u) ^ n <= 1 / (1 - INR n * u).
Proof.
  intros U H. pose proof (gamma u U n H) as G. unfold grown in G. apply Rle_trans with (1 + INR n * u / (1 - INR n * u)); [lra|].
  right. field. lra.
Qed.

(* And a count is never computed as more than another that counts wherever it does, in the same order: rounding is
   monotone. *)
Fixpoint rounded (r : R -> R) (t : order) : R :=
  match t with
  | Term w v => r (w * v)
  | Add s t => r (rounded r s + rounded r t)
  | Fused w v t => r (w * v + rounded r t)
  end.

Inductive counts_more : order -> order -> Prop :=
  | more_term w v w' v' : w * v <= w' * v' -> counts_more (Term w v) (Term w' v')
  | more_add s t s' t' : counts_more s s' -> counts_more t t' -> counts_more (Add s t) (Add s' t')
  | more_fused w v t w' v' t' : w * v <= w' * v' -> counts_more t t' -> counts_more (Fused w v t) (Fused w' v' t').

Theorem more_counts_more r s t : monotone r -> counts_more s t -> rounded r s <= rounded r t.
Proof. intros M C. induction C; simpl; apply M; lra. Qed.

(* What every position adds at most. A number E of the format, so that E + 1 is rounded to E, is a ceiling: what is at
   most E stays so, if each part is at most 1. *)
Theorem ceilings r (E h : R) parts : monotone r -> r (E + 1) <= E -> h <= E -> (forall y, In y parts -> y <= 1) ->
  fold_left (fun s y => r (s + y)) parts h <= E.
Proof.
  intros M C. revert h. induction parts as [|y l IH]; intros h H Y; simpl; [exact H|].
  apply IH; [|intros x Hx; apply Y; now right]. apply Rle_trans with (2 := C), M. pose proof (Y y (or_introl eq_refl)). lra.
Qed.

(* Of numbers of p bits, rounded to the nearest and ties to even, 4k is a ceiling from 2^p on. *)
Section Ones.
Variables emin p : Z.
Context {positive : Prec_gt_0 p}.
Hypothesis enough : (8 <= p /\ emin <= 0)%Z.
Notation fexp := (FLT_exp emin p).
Notation rnd := (round radix2 fexp ZnearestE).

Lemma tie_is_a_ceiling k : (2 ^ p <= 4 * k < 2 ^ (p + 1))%Z -> rnd (IZR (4 * k) + 1) = IZR (4 * k).
Proof.
  intros [L U].
  assert (C : cexp radix2 fexp (IZR (4 * k) + 1) = 1%Z).
  { unfold cexp. rewrite (mag_unique_pos radix2 _ (p + 1)).
    - unfold FLT_exp. lia.
    - rewrite <- plus_IZR. replace (p + 1 - 1)%Z with p by ring. rewrite <- !IZR_Zpower by lia.
      change (radix2 ^ p)%Z with (2 ^ p)%Z. change (radix2 ^ (p + 1))%Z with (2 ^ (p + 1))%Z.
      split; [apply IZR_le; lia|apply IZR_lt].
      assert (E : (2 ^ (p + 1) = 2 * 2 ^ p)%Z) by (rewrite Z.pow_add_r by lia; ring).
      assert (F : (2 ^ p = 4 * 2 ^ (p - 2))%Z) by (change 4%Z with (2 ^ 2)%Z; rewrite <- Z.pow_add_r by lia; f_equal; ring).
      lia. }
  unfold round, scaled_mantissa. rewrite C. unfold F2R. cbn [Fexp Fnum].
  replace ((IZR (4 * k) + 1) * bpow radix2 (- (1))) with (IZR (2 * k) + / 2)
    by (rewrite !mult_IZR; simpl; lra).
  assert (Fl : Zfloor (IZR (2 * k) + / 2) = (2 * k)%Z) by (apply Zfloor_imp; rewrite plus_IZR; lra).
  unfold Znearest. rewrite Fl. replace (IZR (2 * k) + / 2 - IZR (2 * k)) with (/ 2) by ring. rewrite Rcompare_Eq by reflexivity.
  assert (Ev : Z.even (2 * k) = true) by (rewrite Z.even_mul; reflexivity). rewrite Ev. cbn [negb].
  rewrite !mult_IZR. change (bpow radix2 1) with 2. lra.
Qed.

(* From 2^(p+1) on a step of the format is 4 at least, and more than a part of 2^-p, so every number is a ceiling. *)
Lemma large_is_a_ceiling E s : generic_format radix2 fexp E -> two (p + 1) <= E ->
  s < E + 2 \/ s < E + / 2 * (E * two (- p)) -> rnd s <= E.
Proof.
  intros G L S. assert (P : 0 < E) by (pose proof (bpow_gt_0 radix2 (p + 1)); lra).
  apply round_N_le_midp; [typeclasses eauto|exact G|]. rewrite succ_eq_pos by lra.
  assert (U : two 2 <= ulp radix2 fexp E).
  { rewrite ulp_neq_0 by lra. apply bpow_le. unfold cexp, FLT_exp.
    assert (M : (p + 2 <= mag radix2 E)%Z).
    { apply mag_ge_bpow. rewrite Rabs_pos_eq by lra. replace (p + 2 - 1)%Z with (p + 1)%Z by ring. exact L. }
    lia. }
  change (two 2) with 4 in U. pose proof (ulp_FLT_gt radix2 emin p E) as T. rewrite (Rabs_pos_eq E) in T by lra.
  destruct S; lra.
Qed.

(* So a state that begins with what a prefill counts, by a tree and cast to the format, and to which each later position
   adds 1 at most, is at most 2^p or 9/8 of all positions. *)
Theorem positions_at_most r h first parts : monotone r ->
  (forall k, (2 ^ p <= 4 * k < 2 ^ (p + 1))%Z -> r (IZR (4 * k) + 1) <= IZR (4 * k)) ->
  (forall E, generic_format radix2 fexp E -> two (p + 1) <= E -> r (E + 1) <= E) ->
  generic_format radix2 fexp h -> h <= (1 + two (-8)) * (16 / 15 * first) -> (forall y, In y parts -> y <= 1) ->
  fold_left (fun s y => r (s + y)) parts h <= Rmax (two p) (9 / 8 * first).
Proof.
  intros M T L G H Y. change (two (-8)) with (/ 256) in H.
  assert (Z2 : two p = IZR (2 ^ p)) by (symmetry; apply (IZR_Zpower radix2); lia).
  assert (Z3 : two (p + 1) = IZR (2 ^ (p + 1))) by (symmetry; apply (IZR_Zpower radix2); lia).
  assert (D : (2 ^ (p + 1) = 2 * 2 ^ p)%Z) by (rewrite Z.pow_add_r by lia; ring).
  assert (Q : (2 ^ p = 4 * 2 ^ (p - 2))%Z) by (change 4%Z with (2 ^ 2)%Z; rewrite <- Z.pow_add_r by lia; f_equal; ring).
  assert (B : (2 ^ 8 <= 2 ^ p)%Z) by (apply Z.pow_le_mono_r; lia). apply IZR_le in B. change (IZR (2 ^ 8)) with 256 in B.
  assert (E : exists E, h <= E /\ r (E + 1) <= E /\ E <= Rmax (two p) (h + 4)).
  { destruct (Rle_lt_dec h (two p)) as [A|A].
    { exists (two p). rewrite Z2, Q. split; [rewrite <- Q, <- Z2; exact A|]. split; [apply T; lia|apply Rmax_l]. }
    destruct (Rle_lt_dec (two (p + 1)) h) as [C|C].
    { exists h. split; [lra|]. split; [now apply L|]. apply Rle_trans with (h + 4); [lra|apply Rmax_r]. }
    set (k := Zceil (h / 4)).
    assert (K : h / 4 <= IZR k < h / 4 + 1).
    { split; [apply Zceil_ub|]. unfold k, Zceil. rewrite opp_IZR. pose proof (Zfloor_ub (- (h / 4))). lra. }
    assert (F4 : IZR (4 * k) = 4 * IZR k) by now rewrite mult_IZR.
    exists (IZR (4 * k)). split; [lra|]. split.
    - assert (N : (2 ^ p <= 4 * k)%Z) by (apply le_IZR; rewrite mult_IZR; lra).
      destruct (Z_lt_le_dec (4 * k) (2 ^ (p + 1))) as [W|W]; [apply T; lia|].
      assert (V : (4 * k = 2 ^ (p + 1))%Z).
      { assert (R8 : (2 ^ (p + 1) = 4 * (2 * 2 ^ (p - 2)))%Z) by lia.
        assert (X : (4 * k < 2 ^ (p + 1) + 4)%Z) by (apply lt_IZR; rewrite plus_IZR; lra). lia. }
      rewrite V, <- Z3. apply L; [|lra]. apply generic_format_bpow. unfold FLT_exp. lia.
    - apply Rle_trans with (h + 4); [lra|apply Rmax_r]. }
  destruct E as (E & E1 & E2 & E3). apply Rle_trans with E; [now apply (ceilings r E h)|].
  apply Rle_trans with (1 := E3). apply Rmax_case; [apply Rmax_l|].
  destruct (Rle_lt_dec (h + 4) (two p)) as [A|A]; [apply Rle_trans with (1 := A), Rmax_l|].
  apply Rle_trans with (2 := Rmax_r _ _). lra.
Qed.
End Ones.

(* In float32 itself. *)
Corollary single_positions_at_most h first parts (rnd := round radix2 (FLT_exp (-149) 24) ZnearestE) :
  generic_format radix2 (FLT_exp (-149) 24) h -> h <= (1 + two (-8)) * (16 / 15 * first) ->
  (forall y, In y parts -> y <= 1) -> fold_left (fun s y => rnd (s + y)) parts h <= Rmax (two 24) (9 / 8 * first).
Proof.
  intros G H Y. assert (P24 : Prec_gt_0 24) by reflexivity.
  apply (positions_at_most (-149) 24 ltac:(lia)); try assumption.
  - intros x y L. apply round_le; [typeclasses eauto..|exact L].
  - intros k K. right. apply (tie_is_a_ceiling (-149) 24 ltac:(lia)). exact K.
  - intros E F L. apply (large_is_a_ceiling (-149) 24 ltac:(lia)); [exact F|exact L|left; lra].
Qed.

(* In a format of 8 to 11 bits: rounded to float32 first. *)
Corollary narrow_positions_at_most emin p h first parts (positive : Prec_gt_0 p) (fits : (8 <= p <= 11 /\ -149 <= emin <= 0)%Z)
  (step := fun x => round radix2 (FLT_exp emin p) ZnearestE (round radix2 (FLT_exp (-149) 24) ZnearestE x)) :
  generic_format radix2 (FLT_exp emin p) h -> h <= (1 + two (-8)) * (16 / 15 * first) ->
  (forall y, In y parts -> y <= 1) -> fold_left (fun s y => step (s + y)) parts h <= Rmax (two p) (9 / 8 * first).
Proof.
  intros G H Y. assert (P24 : Prec_gt_0 24) by reflexivity.
  assert (B : (2 ^ (p + 1) <= 2 ^ 12)%Z) by (apply Z.pow_le_mono_r; lia).
  apply (positions_at_most emin p ltac:(lia)); try assumption.
  - intros x y L. apply round_le; [typeclasses eauto..|]. apply round_le; [typeclasses eauto..|exact L].
  - intros k K. unfold step. right. rewrite (round_generic _ _ ZnearestE (IZR (4 * k) + 1)).
    + apply (tie_is_a_ceiling emin p ltac:(lia)). exact K.
    + rewrite <- plus_IZR. apply generic_format_FLT. exists (Float radix2 (4 * k + 1) 0); [unfold F2R; simpl; lra| |simpl; lia].
      cbn [Fnum]. change (radix2 ^ 24)%Z with (2 ^ 24)%Z. change (2 ^ 12)%Z with 4096%Z in B.
      pose proof (Z.pow_nonneg 2 p ltac:(lia)). change (2 ^ 24)%Z with 16777216%Z. lia.
  - intros E F L. apply (large_is_a_ceiling emin p ltac:(lia)); [exact F|exact L|].
    assert (L8 : 512 <= E).
    { apply Rle_trans with (2 := L). change 512 with (two 9). apply bpow_le. lia. }
    set (s := round radix2 (FLT_exp (-149) 24) ZnearestE (E + 1)).
    assert (R : Rabs (s - (E + 1)) <= / 2 * bpow radix2 (-24 + 1) * Rabs (E + 1)).
    { unfold s. apply relative_error_N_FLT; [reflexivity|]. change (-149 + 24 - 1)%Z with (-126)%Z.
      rewrite Rabs_pos_eq by lra. apply Rle_trans with 1; [change 1 with (bpow radix2 0); apply bpow_le; lia|lra]. }
    rewrite (Rabs_pos_eq (E + 1)) in R by lra. apply Rabs_le_inv in R.
    assert (D : bpow radix2 (-24 + 1) = / 8388608) by (simpl; lra). rewrite D in R.
    assert (T : two (-11) <= two (- p)) by (apply bpow_le; lia). assert (T0 : two (-11) = / 2048) by (simpl; lra).
    rewrite T0 in T. pose proof (Rmult_le_compat_l E _ _ ltac:(lra) T) as W.
    destruct (Rle_lt_dec E 8388608); [left; lra|right; lra].
Qed.
