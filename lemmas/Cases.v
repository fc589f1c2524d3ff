(* Case distinction: what values can be at every position, from finitely many cases that cover all of them. *)

From Coq Require Import Arith ZArith Reals List Lra Lia.
From Lemmas Require Import Activations.
Import ListNotations.

(* A value at position t = 1, 2, …, seen some positions back: so far back that nothing stood there yet it has a start
   value, and else it is what stood there. *)
Section Positions.
Variable number : Type.
Record place := Place { lag : nat; before : nat -> number; stood : nat -> number }.

Definition view (places : list place) (t : nat) : list number :=
  map (fun p => if (t <=? lag p)%nat then before p (lag p - t) else stood p (t - lag p)) places.

(* What a case says there: position c, where at places that are not before the start stands what the readings say. *)
Fixpoint case (c : nat) (places : list place) (readings : list number) : list number :=
  match places, readings with
  | p :: ps, r :: rs => (if (c <=? lag p)%nat then before p (lag p - c) else r) :: case c ps rs
  | _, _ => []
  end.

(* Lemmas of the start and of joint values: what holds of all readings in the cases 1, …, k + 1, where k is the largest
   lag, holds of what several places hold at once, at every position. *)
Theorem joint_values (P : list number -> Prop) (allowed : list number -> Prop) places k :
  (forall p, In p places -> (lag p <= k)%nat) ->
  (forall t, allowed (map (fun p => stood p (t - lag p)) places)) ->
  (forall c readings, (1 <= c <= S k)%nat -> allowed readings -> P (case c places readings)) ->
  forall t, (1 <= t)%nat -> P (view places t).
Proof.
  intros K A C t T. specialize (C (Nat.min t (S k)) (map (fun p => stood p (t - lag p)) places) ltac:(lia) (A t)).
  replace (view places t) with (case (Nat.min t (S k)) places (map (fun p => stood p (t - lag p)) places)); [exact C|].
  clear A C. induction places as [|p l IH]; [reflexivity|]. unfold view in *. simpl.
  pose proof (K p (or_introl eq_refl)). rewrite IH by (intros q Hq; apply K; now right). f_equal.
  destruct (Nat.leb_spec (Nat.min t (S k)) (lag p)), (Nat.leb_spec t (lag p)); try lia; f_equal; lia.
Qed.
End Positions.

Open Scope R_scope.

(* Lemma of joint values: what a case leaves of relu, nothing, or all, of what is bent; or a number within bounds,
  beside a line or beside
   another relu that bends the same but for a number. *)
Theorem unbent q lo hi : lo <= q <= hi ->
  (0 <= lo -> relu q = q) /\ (hi <= 0 -> relu q = 0) /\
  0 <= relu q <= Rmax hi 0 /\ 0 <= relu q - q <= Rmax (- lo) 0.
Proof.
  intros H. unfold relu. pose proof (Rmax_l hi 0). pose proof (Rmax_r hi 0). pose proof (Rmax_l (- lo) 0).
  pose proof (Rmax_r (- lo) 0). repeat split; intros; try (rewrite Rmax_left; lra); try (rewrite Rmax_right; lra);
  destruct (Rle_dec 0 q); [rewrite Rmax_left|rewrite Rmax_right|rewrite Rmax_left|rewrite Rmax_right|rewrite Rmax_left|
    rewrite Rmax_right|rewrite Rmax_left|rewrite Rmax_right]; lra.
Qed.

Theorem nearest_relu q c : Rmin c 0 <= relu (q + c) - relu q <= Rmax c 0.
Proof.
  unfold relu, Rmin, Rmax. destruct (Rle_dec c 0), (Rle_dec (q + c) 0), (Rle_dec q 0); lra.
Qed.

(* What is left is a polynomial over states: products of intervals lie between products of their ends, and sums add. *)
Theorem product_of_intervals a b c d x y : a <= x <= b -> c <= y <= d ->
  Rmin (Rmin (a * c) (a * d)) (Rmin (b * c) (b * d)) <= x * y <= Rmax (Rmax (a * c) (a * d)) (Rmax (b * c) (b * d)).
Proof.
  intros X Y.
  assert (L : Rmin (a * y) (b * y) <= x * y <= Rmax (a * y) (b * y)).
  { unfold Rmin, Rmax. destruct (Rle_dec (a * y) (b * y)); destruct (Rle_dec 0 y) as [Z|Z]; try apply Rnot_le_lt in Z;
    nra. }
  assert (E : forall u, Rmin (u * c) (u * d) <= u * y <= Rmax (u * c) (u * d)).
  { intros u. unfold Rmin, Rmax. destruct (Rle_dec (u * c) (u * d)); destruct (Rle_dec 0 u) as [Z|Z]; try apply
    Rnot_le_lt in Z; nra. }
  pose proof (E a). pose proof (E b). split.
  - apply Rle_trans with (2 := proj1 L). apply Rmin_glb.
    + apply Rle_trans with (2 := proj1 (E a)). apply Rmin_l.
    + apply Rle_trans with (2 := proj1 (E b)). apply Rmin_r.
  - apply Rle_trans with (1 := proj2 L). apply Rmax_lub.
    + apply Rle_trans with (1 := proj2 (E a)). apply Rmax_l.
    + apply Rle_trans with (1 := proj2 (E b)). apply Rmax_r.
Qed.

(* And a whole number: what has whole factors of numbers with a common divisor is the rest modulo that. *)
Theorem modulo_the_step (step rest : Z) (terms : list (Z * Z)) : (forall t, In t terms -> (step | fst t)%Z) ->
  exists n, (fold_right (fun t s => fst t * snd t + s) rest terms = rest + n * step)%Z.
Proof.
  induction terms as [|[c x] l IH]; intros H; simpl; [exists 0%Z; ring|].
  destruct IH as [n ->]; [intros t Ht; apply H; now right|]. destruct (H (c, x) (or_introl eq_refl)) as [k K].
  simpl in K. exists (k * x + n)%Z. rewrite K. ring.
Qed.
