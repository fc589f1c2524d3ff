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
