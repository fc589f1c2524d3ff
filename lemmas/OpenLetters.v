(* Letters that are left open: a circuit and a task side by side, where numbers are tables over letters not chosen
  yet. *)

From Coq Require Import Arith Reals List FunctionalExtensionality Lra Lia.
From Lemmas Require Import Situations.
Import ListNotations.
Open Scope R_scope.

Section OpenLetters.
Variables node letter memory : Type.
Variable edge : node -> letter -> node -> Prop.
Variable move : letter -> memory -> memory.

(* An assignment gives each open letter, by its number, a letter. A situation knows where the path is, and has what is
   remembered as a table over assignments, some of which are possible. *)
Definition assignment := nat -> letter.
Record open := Open { place : node; table : assignment -> memory; possible : assignment -> Prop }.
Definition stands_for (q : open) (x : node * memory) : Prop :=
  exists r, possible q r /\ x = (place q, table q r).

(* Lemma of open letters: situations that are equal up to the names of the open letters stand for the same. *)
Theorem renamed q p (name back : nat -> nat) :
  (forall i, name (back i) = i) -> (forall i, back (name i) = i) -> place p = place q ->
  (forall r, table p r = table q (fun i => r (name i))) -> (forall r, possible p r <-> possible q (fun i => r (name
    i))) ->
  forall x, stands_for p x <-> stands_for q x.
Proof.
  intros N B P T W x. split; intros (r & Hr & ->).
  - exists (fun i => r (name i)). split; [now apply W|]. now rewrite P, T.
  - exists (fun i => r (back i)). rewrite P, T.
    assert (E : (fun i => r (back (name i))) = r) by (apply functional_extensionality; intros i; now rewrite B).
    split; [apply W|]; rewrite E; easy.
Qed.

(* Split by a number that has to be known, they stand for no less; a combination less is one that no sequence has. *)
Theorem split_up (number : Type) q (known : assignment -> number) x : stands_for q x ->
  exists v, stands_for (Open (place q) (table q) (fun r => possible q r /\ known r = v)) x.
Proof. intros (r & Hr & ->). exists (known r), r. now repeat split. Qed.

(* A letter of an edge is taken on without a choice: a new open letter, which nothing depended on so far. *)
Definition set (n : nat) (a : letter) (r : assignment) : assignment := fun i => if Nat.eq_dec i n then a else r i.
Definition taken (q : open) (n : nat) (t : node) : open :=
  Open t (fun r => move (r n) (table q r)) (fun r => possible q r /\ edge (place q) (r n) t).

Theorem one_more_open_letter q n s h a t :
  (forall r b, table q (set n b r) = table q r /\ (possible q r -> possible q (set n b r))) ->
  stands_for q (s, h) -> edge s a t -> stands_for (taken q n t) (t, move a h).
Proof.
  intros F (r & Hr & E) Ed. injection E as -> ->. exists (set n a r). destruct (F r a) as [T P]. unfold taken. simpl.
  rewrite T. unfold set at 2 3. destruct (Nat.eq_dec n n); [|easy]. split; [split; [now apply P|exact Ed]|reflexivity].
Qed.

(* So where what each handled situation leads to is stood for by handled ones, and the right letter leads in all that is
   possible in them, it leads in every sequence. *)
Theorem open_letters (handled : open -> Prop) (fresh : open -> nat) start empty score right :
  (exists q, handled q /\ stands_for q (start, empty)) ->
  (forall q r b, handled q -> table q (set (fresh q) b r) = table q r /\ (possible q r -> possible q (set (fresh q) b
    r))) ->
  (forall q t x, handled q -> stands_for (taken q (fresh q) t) x -> exists p, handled p /\ stands_for p x) ->
  (forall q r v, handled q -> possible q r -> right (place q) = Some v ->
    forall u : letter, u <> v -> score (table q r) u < score (table q r) v) ->
  forall n s h v, reached node letter memory edge move start empty n s h -> right s = Some v ->
  forall u, u <> v -> score h u < score h v.
Proof.
  intros B F C L. apply (answered node letter memory open edge move stands_for start empty handled score right B).
  - intros q s h a t K M E. apply (C q t); [exact K|]. apply one_more_open_letter with s; [|exact M|exact E].
    intros r b. now apply F.
  - intros q s h v K (r & Hr & E) V. injection E as -> ->. now apply (L q r v).
Qed.
End OpenLetters.
