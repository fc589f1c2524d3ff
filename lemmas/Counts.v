(* Counts that outgrow the format. *)

From Coq Require Import ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats Sums Activations.
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
