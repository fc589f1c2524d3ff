(* Letters that nothing tells apart, and edges by themselves. *)

From Coq Require Import Arith Reals List Lra Lia.
From Lemmas Require Import Sums Totals Potential.
Import ListNotations.
Open Scope R_scope.

Section Alike.
Variables node letter edge : Type.
Hypothesis same_edge : forall e d : edge, {e = d} + {e <> d}.
Variables (begin finish : edge -> node) (on_edge : edge -> letter -> Prop).
Variable table : Type.
Variable entry : table -> letter -> R.
Variable first : letter -> letter.         (* the letter that stands for a class *)
Hypothesis no_edge_tells : forall e a, on_edge e a <-> on_edge e (first a).
Hypothesis no_table_tells : forall f a, entry f a = entry f (first a).

Notation walk := (walk node letter edge begin finish).
Definition in_language s p t := walk s p t /\ forall x, In x p -> on_edge (fst x) (snd x).
Definition of_classes (p : sequence edge letter) : sequence edge letter := map (fun x => (fst x, first (snd x))) p.

(* A value reads letters through tables only: whatever it makes of the numbers that these hold, it makes the same of the
   classes. *)
Definition readings (p : sequence edge letter) : list (table -> R) := map (fun x f => entry f (snd x)) p.
Variable value : list (table -> R) -> R.
Hypothesis of_numbers : forall l m, Forall2 (fun g h => forall f, g f = h f) l m -> value l = value m.

Lemma classes_are_a_path s p t : in_language s p t -> in_language s (of_classes p) t.
Proof.
  intros [W I]. split.
  - clear I. induction W as [s|e a p t W IH]; [constructor|]. simpl. now constructor.
  - intros x Hx. unfold of_classes in Hx. apply in_map_iff in Hx as (y & <- & Hy). simpl.
    apply (proj1 (no_edge_tells (fst y) (snd y))). now apply I.
Qed.

(* Lemma of classes of letters: what holds of a value on all paths of classes holds on all sequences. (A class may come
   again on an edge that is distinct, so these are more paths.) *)
Theorem classes_of_letters (P : R -> Prop) s :
  (forall p t, in_language s p t -> (forall x, In x p -> snd x = first (snd x)) -> P (value (readings p))) ->
  (forall a, first (first a) = first a) ->
  forall p t, in_language s p t -> P (value (readings p)).
Proof.
  intros H F p t L. replace (value (readings p)) with (value (readings (of_classes p))).
  - apply (H _ t); [now apply classes_are_a_path|]. intros x Hx. unfold of_classes in Hx.
    apply in_map_iff in Hx as (y & <- & _). simpl. now rewrite F.
  - apply of_numbers. unfold readings, of_classes. rewrite map_map. clear L. induction p as [|x p IH]; simpl;
    constructor.
    + intros f. symmetry. apply no_table_tells.
    + exact IH.
Qed.

(* Edges that a path can take right before one of these, and so on. *)
Definition preceding (live : edge -> Prop) (d : edge) : Prop := exists e, live e /\ finish d = begin e.
Fixpoint preceding_by (k : nat) (live : edge -> Prop) : edge -> Prop :=
  match k with O => live | S k => preceding (preceding_by k live) end.

(* Lemma of edges by themselves: what stands k positions back stands at an edge from which a path of k steps leads to
  one
   of the set, or before the start. *)
Theorem stands_at_an_edge_before (live : edge -> Prop) m d q e s t :
  walk s (m ++ d :: q ++ [e]) t -> live (fst e) -> preceding_by (S (length q)) live (fst d).
Proof.
  destruct e as [e b]. intros W L. assert (V : exists u, walk u (d :: q ++ [(e, b)]) t).
  { revert s W. induction m as [|x m IH]; intros s W; [now exists s|].
    inversion W as [|e1 a1 p1 t1 W1]; subst. now apply (IH (finish e1)). }
  clear W. destruct V as (u & V). revert u d V. induction q as [|c q IH]; intros u [d a] V.
  - inversion V as [|e1 a1 p1 t1 W1]; subst. inversion W1; subst. exists e. now split.
  - inversion V as [|e1 a1 p1 t1 W1]; subst. exists (fst c). split; [exact (IH _ c W1)|]. inversion W1; subst. simpl.
    congruence.
Qed.

(* Lemmas of edges by themselves and of what paths leave: a value is 0 throughout if, for each of some sets of edges
  that
   leave none out, a value is 0 throughout that is the same where a path takes one of the set. *)
Theorem zero_edge_by_edge (set : Type) (in_set : set -> edge -> Prop) (v : sequence edge letter -> R)
  (there : set -> sequence edge letter -> R) s :
  (forall e, exists k, in_set k e) ->
  (forall k p x t, in_language s (p ++ [x]) t -> in_set k (fst x) -> v (p ++ [x]) = there k (p ++ [x])) ->
  (forall k p t, in_language s p t -> there k p = 0) ->
  forall p x t, in_language s (p ++ [x]) t -> v (p ++ [x]) = 0.
Proof.
  intros C E Z p x t L. destruct (C (fst x)) as (k & K). rewrite (E k p x t L K). now apply (Z k _ t).
Qed.
End Alike.

(* What paths leave: in a product φ(x)·g, φ may go on anyhow from where x can be where g is not 0. *)
Theorem where_the_factor_is_not_zero (phi straight : R -> R) x g : (g <> 0 -> straight x = phi x) -> straight x * g =
  phi x * g.
Proof. intros H. destruct (Req_dec g 0) as [->|G]; [ring|]. now rewrite H. Qed.

(* Joint values, products apart: each product of a sum is bounded for every letter that may stand somewhere, alone; then the sum is
   within the least and the most that these bounds are in sum, letter by letter. *)
Theorem products_apart (letter : Type) (l : list (R * (letter -> R) * (letter -> R))) low high (a : letter) :
  (forall x, In x l -> snd (fst x) a <= fst (fst x) <= snd x a) ->
  (forall b, low <= sum (map (fun x => snd (fst x) b) l) /\ sum (map (fun x => snd x b) l) <= high) ->
  low <= sum (map (fun x => fst (fst x)) l) <= high.
Proof.
  intros H B. destruct (B a) as (L & U). split; eapply Rle_trans; [exact L| |  |exact U].
  - apply (sum_map_le (fun x => snd (fst x) a)). intros x I. apply (H x I).
  - apply (sum_map_le _ (fun x => snd x a)). intros x I. apply (H x I).
Qed.
