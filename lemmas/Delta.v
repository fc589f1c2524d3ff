(* The gated delta rule: overwriting, reflections and projections, and its form in chunks.

   The columns of the state do not meet, so everything is said of one column s of d rows, and of the number v that a
   position writes into it: s ← s + k · β(v − ⟨k, s⟩). *)

From Coq Require Import Arith ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats Sums Totals Readout States.
Import ListNotations.
Open Scope R_scope.

Section Delta.
Variable d : nat.
Definition vector := nat -> R.
Definition dot (x y : vector) : R := over d (fun i => x i * y i).
Definition delta (beta : R) (k : vector) (v : R) (s : vector) : vector := fun i => s i + k i * (beta * (v - dot k s)).
Definition one_hot (m : nat) : vector := fun i => if Nat.eq_dec i m then 1 else 0.

Lemma dot_along x s y c : dot x (fun i => s i + y i * c) = dot x s + dot x y * c.
Proof.
  unfold dot. rewrite (over_ext d _ (fun i => x i * s i + c * (x i * y i))) by (intros; ring).
  rewrite over_plus, over_scaled. ring.
Qed.

Lemma over_one_hot m (f : nat -> R) n : over n (fun i => one_hot m i * f i) = if lt_dec m n then f m else 0.
Proof.
  unfold over, one_hot. induction n as [|n IH]; simpl; [reflexivity|]. rewrite IH.
  destruct (Nat.eq_dec n m) as [E|E], (lt_dec m n), (lt_dec m (S n)); try lia; try rewrite E; ring.
Qed.

(* Lemma of overwriting: with β = 1 and a one-hot key the row of the key is replaced, every other stays. *)
Theorem overwrites m v s i : (m < d)%nat -> delta 1 (one_hot m) v s i = if Nat.eq_dec i m then v else s i.
Proof.
  intros M. unfold delta, dot. rewrite over_one_hot. destruct (lt_dec m d); [|lia].
  unfold one_hot. destruct (Nat.eq_dec i m) as [->|]; ring.
Qed.

(* A key of 0 writes nothing, and a one-hot query reads its row. *)
Theorem writes_nothing beta v s i : delta beta (fun _ => 0) v s i = s i.
Proof. unfold delta. ring. Qed.

Theorem reads_its_row m s : (m < d)%nat -> dot (one_hot m) s = s m.
Proof. intros M. unfold dot. rewrite over_one_hot. destruct (lt_dec m d); [reflexivity|lia]. Qed.

(* As floats: v − row and row + (v − row) are exact where the format holds the difference. *)
Theorem overwrites_exactly F r q row v : keeps F r -> keeps F q -> holds F (v - row) -> holds F v ->
  q (row + r (v - row)) = v.
Proof. intros K Q D V. rewrite (K _ D). replace (row + (v - row)) with v by ring. now apply Q. Qed.

(* So a row is a latch of v under the flag that the key is it: a step of `States` that leaves or replaces. *)
Theorem a_row_is_a_latch m (writes : list (nat * R)) :
  (m < d)%nat -> (forall w, In w writes -> (fst w < d)%nat) ->
  fold_left (fun s w => delta 1 (one_hot (fst w)) (snd w) s) writes (fun _ => 0) m =
  since (map (fun w => if Nat.eq_dec (fst w) m then (0, snd w) else (1, 0)) writes).
Proof.
  intros M. induction writes as [|[n v] l IH] using rev_ind; intros H; [reflexivity|].
  rewrite fold_left_app, map_app. cbn [fold_left map]. rewrite since_last, <- IH by (intros w Hw; apply H, in_or_app; auto).
  assert (N : (n < d)%nat) by (apply (H (n, v)), in_or_app; right; now left).
  cbn [fst snd]. rewrite overwrites by exact N.
  destruct (Nat.eq_dec m n), (Nat.eq_dec n m); try congruence; simpl; ring.
Qed.

(* Lemma of moved states: a step I − β·k·kᵀ with |k| = 1 and 0 ≤ β ≤ 2 makes no vector longer; β = 2 reflects. *)
Definition turned (beta : R) (k x : vector) : vector := fun i => x i + k i * - (beta * dot k x).

Lemma along_length x k c :
  dot (fun i => x i + k i * c) (fun i => x i + k i * c) = dot x x + 2 * c * dot k x + c * c * dot k k.
Proof.
  unfold dot. rewrite (over_ext d _ (fun i => x i * x i + (2 * c * (k i * x i) + c * c * (k i * k i)))) by (intros; ring).
  rewrite !over_plus, !over_scaled. ring.
Qed.

Lemma length_turned beta k x : dot k k = 1 ->
  dot (turned beta k x) (turned beta k x) = dot x x - beta * (2 - beta) * (dot k x * dot k x).
Proof.
  intros K. unfold turned. rewrite along_length, K. ring.
Qed.

Theorem no_vector_grows beta k x : 0 <= beta <= 2 -> dot k k = 1 ->
  dot (turned beta k x) (turned beta k x) <= dot x x.
Proof.
  intros B K. rewrite (length_turned beta k x K).
  assert (0 <= beta * (2 - beta) * (dot k x * dot k x)).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. nra. }
  lra.
Qed.

Theorem reflections k x i : dot k k = 1 ->
  dot (turned 2 k x) (turned 2 k x) = dot x x /\ turned 2 k (turned 2 k x) i = x i.
Proof.
  intros K. split; [rewrite (length_turned 2 k x K); ring|]. unfold turned at 1.
  assert (E : dot k (turned 2 k x) = - dot k x).
  { unfold turned. rewrite dot_along, K. ring. }
  rewrite E. unfold turned. ring.
Qed.

Theorem delta_is_turned beta k v s i : delta beta k v s i = turned beta k s i + beta * v * k i.
Proof. unfold delta, turned. ring. Qed.

(* Lemmas of overwriting and of moved states: a chunk, with the keys, values and steps β of its positions. *)
Variables (key : nat -> vector) (value step : nat -> R) (before : vector).

Fixpoint state (n : nat) : vector :=
  match n with
  | O => before
  | S n => delta (step n) (key n) (value n) (state n)
  end.

Definition write (n : nat) : R := step n * (value n - dot (key n) (state n)).

Lemma state_is_sum n i : state n i = before i + upto (fun l => key l i * write l) n.
Proof. induction n as [|n IH]; simpl; [ring|]. unfold delta at 1. rewrite IH. unfold write. ring. Qed.

Lemma dot_of_sum k n : dot k (state n) = dot k before + upto (fun l => dot k (key l) * write l) n.
Proof.
  induction n as [|n IH]; simpl; [ring|]. unfold delta. rewrite dot_along, IH. unfold write. ring.
Qed.

Lemma upto_ext f g n : (forall l, (l < n)%nat -> f l = g l) -> upto f n = upto g n.
Proof. apply over_ext. Qed.

(* The chunk solves (I + tril(β·K·Kᵀ, −1))·w = β·(v − K·S): w is what the steps write one after the other, and the state
   behind the chunk is that of the steps. *)
Theorem chunks_are_steps length w :
  (forall n, (n < length)%nat ->
    w n + step n * upto (fun l => dot (key n) (key l) * w l) n = step n * (value n - dot (key n) before)) ->
  (forall n, (n < length)%nat -> w n = write n) /\
  (forall i, state length i = before i + upto (fun l => key l i * w l) length).
Proof.
  intros H. assert (W : forall n, (n < length)%nat -> w n = write n).
  { intros n. induction n as [n IH] using lt_wf_ind. intros L. specialize (H n L).
    rewrite (upto_ext _ (fun l => dot (key n) (key l) * write l)) in H.
    - unfold write at 1. rewrite dot_of_sum.
      replace (w n) with (step n * (value n - dot (key n) before) -
        step n * upto (fun l => dot (key n) (key l) * write l) n) by lra. ring.
    - intros l Hl. rewrite IH; [reflexivity|exact Hl|lia]. }
  split; [exact W|]. intros i. rewrite state_is_sum. f_equal. apply upto_ext. intros l Hl. now rewrite W.
Qed.
End Delta.
