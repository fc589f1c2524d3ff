(* Memories of several columns: which cancel, and how much the others hold together. *)

From Coq Require Import Arith Reals List Permutation Lra Lia.
From Lemmas Require Import Sums Totals States.
Import ListNotations.
Open Scope R_scope.

(* A column: with which number it is read now, and the steps of its state so far. *)
Definition column := (R * list step)%type.
Definition read (l : list column) : R := sum (map (fun c => fst c * since (snd c)) l).

Lemma read_permuted l m : Permutation l m -> read l = read m.
Proof. intros P. apply sum_permuted, Permutation_map, P. Qed.

Lemma read_app l m : read (l ++ m) = read l + read m.
Proof. unfold read. now rewrite map_app, sum_app. Qed.

(* Lemma of other memories' columns: pairs of equal steps (equal B and decay) and opposite C are not read, whatever they
   hold, and what is left is read decay by decay. Where each step replaces what was there they hold the last write. *)
Theorem columns_that_cancel mirrored groups l :
  Permutation l (flat_map (fun c : column => [c; (- fst c, snd c)]) mirrored ++ concat groups) ->
  read l = sum (map read groups).
Proof.
  intros P. rewrite (read_permuted _ _ P), read_app.
  assert (Z : read (flat_map (fun c : column => [c; (- fst c, snd c)]) mirrored) = 0).
  { clear P. induction mirrored as [|[c s] m IH]; [reflexivity|]. simpl flat_map. unfold read in *. simpl. rewrite IH.
    ring. }
  rewrite Z. clear. rewrite Rplus_0_l. induction groups as [|g gs IH]; [reflexivity|]. simpl. now rewrite read_app, IH.
Qed.

Theorem mirrored_columns_hold c before b after : (forall s, In s after -> s = (1, 0)) ->
  let steps := before ++ (0, b) :: after in
  fst (c, steps) * since steps = c * b /\ - c * since steps = - (c * b).
Proof. intros H steps. simpl. unfold steps. rewrite (erased_is_last_write before after b H). split; ring. Qed.

(* Lemma of memories: a factor of a column's B may stand at its C instead. *)
Definition divided (k : R) (s : step) : step := (fst s, snd s / k).

Theorem units_of_columns c k steps : k <> 0 -> (c * k) * since (map (divided k) steps) = c * since steps.
Proof.
  intros K. assert (E : since (map (divided k) steps) = since steps / k).
  { induction steps as [|[a b] l IH] using rev_ind; [unfold since; simpl; field; exact K|].
    rewrite map_app. simpl map. rewrite !since_last, IH. simpl. field. exact K. }
  rewrite E. field. exact K.
Qed.

(* Keys that exclude each other hold together what one can hold. B and C are given column by column, x at each
  position. *)
Theorem what_keys_hold_together (columns positions : list nat) (C : nat -> R) (B : nat -> nat -> R) (x : nat -> R)
  largest most :
  (forall n, In n columns -> Rabs (C n) <= largest) -> 0 <= largest ->
  (forall t, In t positions -> sum (map (fun n => Rabs (B n t)) columns) <= most) ->
  sum (map (fun n => Rabs (C n) * sum (map (fun t => Rabs (B n t * x t)) positions)) columns) <=
  largest * (most * sum (map (fun t => Rabs (x t)) positions)).
Proof.
  intros L L0 M.
  apply Rle_trans with (largest * sum (map (fun n => sum (map (fun t => Rabs (B n t * x t)) positions)) columns)).
  - clear M. induction columns as [|n l IH]; simpl; [lra|].
    assert (P : 0 <= sum (map (fun t => Rabs (B n t * x t)) positions))
      by (apply sum_nonneg; intros y Hy; apply in_map_iff in Hy as (t & <- & _); apply Rabs_pos).
    specialize (IH (fun m Hm => L m (or_intror Hm))).
    pose proof (Rmult_le_compat_r _ _ _ P (L n (or_introl eq_refl))). lra.
  - apply Rmult_le_compat_l; [exact L0|]. clear L L0 C. induction positions as [|t l IH]; simpl.
    + clear. induction columns as [|n l IH]; simpl; [lra|]. lra.
    + specialize (IH (fun s Hs => M s (or_intror Hs))). specialize (M t (or_introl eq_refl)).
      rewrite (sum_map_plus (fun n => Rabs (B n t * x t)) (fun n => sum (map (fun t => Rabs (B n t * x t)) l))).
      assert (E : sum (map (fun n => Rabs (B n t * x t)) columns) = sum (map (fun n => Rabs (B n t)) columns) * Rabs
        (x t)).
      { clear. induction columns as [|n k IH]; simpl; [ring|]. rewrite IH, Rabs_mult. ring. }
      rewrite E. pose proof (Rmult_le_compat_r _ _ _ (Rabs_pos (x t)) M). lra.
Qed.

(* What is at most a function of a count that grows wherever something is stored is stored once for each of its
  values. *)
Theorem once_for_each_count (stored : list (nat * R)) (most : nat -> R) first last :
  NoDup (map fst stored) -> (forall s, In s stored -> (first <= fst s <= last)%nat /\ snd s <= most (fst s)) ->
  (forall n, 0 <= most n) -> sum (map snd stored) <= sum (map most (seq first (last - first + 1))).
Proof.
  intros N H P. apply Rle_trans with (sum (map most (map fst stored))).
  - rewrite map_map. apply sum_map_le. intros s Hs. now apply H.
  - apply sum_distinct; [exact P|exact N|]. intros n Hn. apply in_map_iff in Hn as (s & <- & Hs).
    apply in_seq. destruct (H s Hs) as [B _]. lia.
Qed.

(* Products whose gates are functions of one number are bounded at the worst of its breakpoints. *)
Theorem worst_breakpoint (l : list (R * R * R)) x0 x1 x : (forall p, In p l -> 0 <= snd p) -> x0 <= x <= x1 ->
  let bound y := sum (map (fun p => snd p * Rabs (fst (fst p) * y + snd (fst p))) l) in
  bound x <= Rmax (bound x0) (bound x1).
Proof.
  intros P X bound. destruct (Req_dec x0 x1) as [E|E].
  { replace x with x0 by lra. apply Rmax_l. }
  set (w := (x1 - x) / (x1 - x0)).
  assert (W : 0 <= w <= 1).
  { unfold w. split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|].
    apply Rmult_le_reg_r with (x1 - x0); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (Xw : x = w * x0 + (1 - w) * x1) by (unfold w; field; lra).
  assert (C : bound x <= w * bound x0 + (1 - w) * bound x1).
  { unfold bound. clear bound. induction l as [|[[a b] s] l IH]; simpl; [lra|].
    specialize (IH (fun p Hp => P p (or_intror Hp))). pose proof (P _ (or_introl eq_refl)) as S. simpl in S.
    assert (A : Rabs (a * x + b) <= w * Rabs (a * x0 + b) + (1 - w) * Rabs (a * x1 + b)).
    { replace (a * x + b) with (w * (a * x0 + b) + (1 - w) * (a * x1 + b)) by (rewrite Xw; ring).
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite !Rabs_mult, (Rabs_pos_eq w), (Rabs_pos_eq (1 - w)) by lra.
        lra. }
    pose proof (Rmult_le_compat_l _ _ _ S A). lra. }
  apply Rle_trans with (1 := C). pose proof (Rmax_l (bound x0) (bound x1)). pose proof (Rmax_r (bound x0) (bound x1)).
  set (m := Rmax (bound x0) (bound x1)) in *.
  assert (w * bound x0 <= w * m) by (apply Rmult_le_compat_l; lra).
  assert ((1 - w) * bound x1 <= (1 - w) * m) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(* Lemma of running sums: what adds several running sums is the running sum of all that they add, position by
  position. *)
Theorem several_sums (l : list (R * (nat -> R))) n :
  sum (map (fun p => fst p * sum (map (snd p) (seq 0 n))) l) =
  sum (map (fun t => sum (map (fun p => fst p * snd p t) l)) (seq 0 n)).
Proof.
  generalize (seq 0 n) as places. intros places. induction l as [|[c f] l IH]; simpl.
  - induction places as [|t k IHk]; simpl; [reflexivity|lra].
  - rewrite IH, (sum_map_plus (fun t => c * f t) (fun t => sum (map (fun p => fst p * snd p t) l))). f_equal.
    clear IH. induction places as [|t k IHk]; simpl; [ring|]. rewrite <- IHk. ring.
Qed.

(* Lemma of writes that stop themselves: a memory behind a gate, and a sum of those, is no less than one of them times
  the
   least that its gate can be: the premise on W. *)
Theorem gated_memories (l : list (R * R)) g memory gate_min : In (g, memory) l ->
  (forall p, In p l -> 0 <= fst p /\ 0 <= snd p) -> gate_min <= g -> gate_min * memory <= sum (map (fun p => fst p *
    snd p) l).
Proof.
  intros I P G. destruct (in_split _ _ I) as (a & b & ->). rewrite map_app, sum_app. simpl.
  assert (A : forall k, incl k (a ++ (g, memory) :: b) -> 0 <= sum (map (fun p => fst p * snd p) k)).
  { intros k K. apply sum_nonneg. intros y Hy. apply in_map_iff in Hy as (p & <- & Hp). destruct (P p (K p Hp)).
    now apply Rmult_le_pos. }
  assert (0 <= sum (map (fun p => fst p * snd p) a)) by (apply A; intros p Hp; apply in_or_app; now left).
  assert (0 <= sum (map (fun p => fst p * snd p) b)) by (apply A; intros p Hp; apply in_or_app; right; now right).
  destruct (P (g, memory) I) as [_ M]. simpl in M.
  pose proof (Rmult_le_compat_r memory gate_min g M G). lra.
Qed.

(* Lemma of memories, where letters are many: |Ax|² is x times what Aᵀ makes of Ax, so A makes 0 of x where AᵀA does. *)
Theorem shadows {I J : Type} (A : I -> J -> R) (x : J -> R) rows columns :
  let image i := sum (map (fun j => A i j * x j) columns) in
  (forall j, In j columns -> sum (map (fun i => A i j * image i) rows) = 0) -> forall i, In i rows -> image i = 0.
Proof.
  intros image Z.
  assert (E : forall d : I -> R, sum (map (fun i => d i * image i) rows) =
    sum (map (fun j => x j * sum (map (fun i => A i j * d i) rows)) columns)).
  { intros d. clear Z. induction rows as [|i l IH]; simpl.
    - clear image. induction columns as [|j k IHk]; simpl; [reflexivity|lra].
    - rewrite IH. clear IH. unfold image. clear image. induction columns as [|j k IHk]; simpl; [ring|].
      rewrite !Rmult_plus_distr_l, <- IHk. ring. }
  specialize (E image).
  assert (Z' : sum (map (fun i => image i * image i) rows) = 0).
  { rewrite E. assert (G : forall some, incl some columns ->
      sum (map (fun j => x j * sum (map (fun i => A i j * image i) rows)) some) = 0).
    { induction some as [|j k IHk]; intros S; simpl; [reflexivity|].
      rewrite Z by (apply S; now left). rewrite IHk by (intros y Hy; apply S; now right). ring. }
    apply G. now intros y. }
  clear E Z. intros i Hi. apply Rsqr_0_uniq. unfold Rsqr.
  assert (P : forall l, 0 <= sum (map (fun i => image i * image i) l)).
  { intros l. apply sum_nonneg. intros y Hy. apply in_map_iff in Hy as (z & <- & _). apply Rle_0_sqr. }
  destruct (in_split _ _ Hi) as (a & b & ->). rewrite map_app, sum_app in Z'. simpl in Z'.
  pose proof (P a). pose proof (P b). pose proof (Rle_0_sqr (image i)) as Q. unfold Rsqr in Q. lra.
Qed.
