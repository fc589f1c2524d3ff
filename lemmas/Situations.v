(* What may stand at a position together, found by going along the edges of the input language. *)

From Coq Require Import Arith Reals List Lra Lia.
From Lemmas Require Import Totals States.
Import ListNotations.
Open Scope R_scope.

Section Situations.
Variables node letter memory situation : Type.
Variable edge : node -> letter -> node -> Prop.       (* an edge of the language, with one of its letters *)
Variable move : letter -> memory -> memory.           (* how a letter moves all that is remembered *)
Variable means : situation -> node * memory -> Prop.  (* what a situation stands for: numbers, or intervals of them *)
Variables (start : node) (empty : memory).

(* A sequence, letter by letter, with where it has come to. *)
Inductive reached : nat -> node -> memory -> Prop :=
  | reached_start : reached O start empty
  | reached_step n s t a h : reached n s h -> edge s a t -> reached (S n) t (move a h).

(* Lemmas of known letters and of moved states: where each letter leads from each situation to one of them, every
  sequence
   is in one of them at every position. *)
Theorem closed_situations (known : situation -> Prop) :
  (exists q, known q /\ means q (start, empty)) ->
  (forall q s h a t, known q -> means q (s, h) -> edge s a t -> exists r, known r /\ means r (t, move a h)) ->
  forall n s h, reached n s h -> exists q, known q /\ means q (s, h).
Proof.
  intros B C n s h R. induction R as [|n s t a h R (q & K & M) E]; [exact B|]. now apply (C q s h a t).
Qed.

(* Lemma of edges: the search in rounds. After k rounds a situation q stands for `known k q`: nothing at first, more
   later. Those that are `new` in a round, or have grown in it, are taken on in the next one, and no others are. *)
Section Rounds.
Variable known : nat -> situation -> node * memory -> Prop.
Variable new : nat -> situation -> Prop.
Hypothesis begins : exists q, known O q (start, empty).
Hypothesis at_first : forall q x, known O q x -> new O q.
Hypothesis grows : forall k q x, known k q x -> known (S k) q x.
Hypothesis unchanged : forall k q x, known (S k) q x -> new (S k) q \/ known k q x.
Hypothesis taken_on : forall k q s h a t, new k q -> known k q (s, h) -> edge s a t -> exists r, known (S k) r (t,
  move a h).

Lemma every_one_is_taken_on k : forall q s h a t, known k q (s, h) -> edge s a t -> exists r, known (S k) r (t, move a
  h).
Proof.
  induction k as [|k IH]; intros q s h a t K E.
  - apply (taken_on O q s h a t); [now apply (at_first q (s, h))|exact K|exact E].
  - destruct (unchanged k q (s, h) K) as [N|O].
    + now apply (taken_on (S k) q s h a t).
    + destruct (IH q s h a t O E) as (r & R). exists r. now apply grows.
Qed.

Theorem situations_in_rounds n s h : reached n s h -> exists q, known n q (s, h).
Proof.
  induction 1 as [|n s t a h R (q & K) E]; [exact begins|]. now apply (every_one_is_taken_on n q s h a t).
Qed.

(* After as many rounds as a sequence has letters, or where nothing is new, all positions are known. *)
Lemma grows_further k m q x : (k <= m)%nat -> known k q x -> known m q x.
Proof. induction 1; [easy|]. intros. apply grows. auto. Qed.

Theorem enough_rounds rounds longest n s h : (longest <= rounds)%nat \/ (forall q, ~ new rounds q) ->
  (n <= longest)%nat -> reached n s h -> exists q, known rounds q (s, h).
Proof.
  intros [L|N] Hn R.
  - destruct (situations_in_rounds n s h R) as (q & K). exists q. apply grows_further with n; [lia|exact K].
  - clear Hn longest. destruct rounds as [|k]; [destruct begins as (b & B); destruct (N b (at_first b _ B))|].
    enough (H : exists q, known k q (s, h)) by (destruct H as (q & K); exists q; now apply grows).
    induction R as [|n s t a h R (q & K) E].
    + destruct begins as (q & K). exists q. apply grows_further with O; [lia|exact K].
    + destruct (every_one_is_taken_on k q s h a t K E) as (r & M). exists r.
      destruct (unchanged k r _ M) as [W|O]; [destruct (N r W)|exact O].
Qed.
End Rounds.

(* Lemma of known letters: where a state of the language asks for a letter, it leads in every situation, so it does in
   every sequence there. *)
Theorem answered (known : situation -> Prop) (score : memory -> letter -> R) (right : node -> option letter) :
  (exists q, known q /\ means q (start, empty)) ->
  (forall q s h a t, known q -> means q (s, h) -> edge s a t -> exists r, known r /\ means r (t, move a h)) ->
  (forall q s h v, known q -> means q (s, h) -> right s = Some v -> forall u, u <> v -> score h u < score h v) ->
  forall n s h v, reached n s h -> right s = Some v -> forall u, u <> v -> score h u < score h v.
Proof.
  intros B C L n s h v R V. destruct (closed_situations known B C n s h R) as (q & K & M). now apply (L q s h v).
Qed.
End Situations.

(* The language beside the machine of a task, which stops where nothing more is asked. *)
Section Beside.
Variables node letter held : Type.
Variable edge : node -> letter -> node -> Prop.
Variable step : held -> letter -> option held.
Variables (start : node) (first : held).

Inductive spelled : node -> list letter -> node -> Prop :=
  | spelled_nil s : spelled s [] s
  | spelled_cons s a t l u : edge s a t -> spelled t l u -> spelled s (a :: l) u.

Fixpoint run (m : held) (l : list letter) : option held :=
  match l with [] => Some m | a :: l => match step m a with Some m => run m l | None => None end end.

Definition both (x : node * held) (a : letter) (y : node * held) : Prop :=
  edge (fst x) a (fst y) /\ step (snd x) a = Some (snd y).

Inductive spelled_beside : node * held -> list letter -> node * held -> Prop :=
  | beside_nil x : spelled_beside x [] x
  | beside_cons x a y l z : both x a y -> spelled_beside y l z -> spelled_beside x (a :: l) z.

(* Lemma of known letters: every beginning of a sequence that the machine goes along is a path of both, and nothing else
   is; so is what is asked behind it. *)
Theorem machine_beside_the_language s m l t k :
  spelled_beside (s, m) l (t, k) <-> spelled s l t /\ run m l = Some k.
Proof.
  split.
  - remember (s, m) as x. remember (t, k) as y. intros H. revert s m Heqx. induction H as [x|x a y' l z [E S] H IH];
    intros s m ->.
    + injection Heqy as -> ->. split; [constructor|reflexivity].
    + destruct y' as [s' m']. simpl in E, S. destruct (IH Heqy s' m' eq_refl) as [P Q].
      split; [now apply spelled_cons with s'|]. simpl. now rewrite S.
  - intros [P Q]. revert m Q. induction P as [s|s a t' l u E P IH]; intros m Q; simpl in Q.
    + injection Q as ->. constructor.
    + destruct (step m a) as [m'|] eqn:S; [|discriminate]. apply beside_cons with (t', m'); [now split|]. now apply IH.
Qed.
End Beside.

(* States of a circuit: what adds up, what adds up since a flag was last 1, what was stored when it was. *)
Inductive kind := Sums | Counts | Latches.
Definition next (k : kind) (flag : bool) (stored before : R) : R :=
  match k, flag with
  | Sums, _ | Counts, false => before + stored
  | Counts, true => 0
  | Latches, true => stored
  | Latches, false => before
  end.
Definition held (k : kind) (l : list (bool * R)) : R := fold_left (fun h s => next k (fst s) (snd s) h) l 0.

(* Lemma of edges: the interval of a state behind an edge, from those before it and of what is stored; closed and opened
   say that the flag is not 1, or is 1, throughout. One more step keeps it. *)
Definition stays (k : kind) (before stored : R) : R := match k with Latches => before | _ => before + stored end.
Definition moves (k : kind) (before stored : R) : R :=
  match k with Sums => before + stored | Counts => 0 | Latches => stored end.

Theorem one_more_step k flag stored before a b c d lo hi :
  a <= stored <= b -> c <= before <= d ->
  (flag = false -> lo <= stays k c a /\ stays k d b <= hi) ->
  (flag = true -> lo <= moves k c a /\ moves k d b <= hi) ->
  lo <= next k flag stored before <= hi.
Proof. destruct k, flag; simpl; intros; intuition lra. Qed.

(* So bounds at the states of the language and behind its edges that fit together bound a state along every path. A step
   is an edge with a flag and what is stored, which other states may have a say in. *)
Section Bounds.
Variables node label edge : Type.
Notation step := (arc node label).
Variables (edge_of : step -> edge) (flag : step -> bool) (stored : step -> R) (k : kind).
Variables (of : edge -> R * R) (can : edge -> bool -> Prop).     (* what is stored on an edge, and what the flag can
  be *)
Variables (at_node : nat -> node -> R * R) (behind : nat -> edge -> R * R).  (* least and largest, after so many
  positions *)
Definition between (i : R * R) (x : R) : Prop := fst i <= x <= snd i.

Theorem bounds_along_paths steps :
  (forall e, In e steps -> between (of (edge_of e)) (stored e) /\ can (edge_of e) (flag e)) ->
  (forall n e, In e steps -> let i := behind n (edge_of e) in let b := at_node n (source _ _ e) in let s := of
    (edge_of e) in
    (can (edge_of e) false -> fst i <= stays k (fst b) (fst s) /\ stays k (snd b) (snd s) <= snd i) /\
    (can (edge_of e) true -> fst i <= moves k (fst b) (fst s) /\ moves k (snd b) (snd s) <= snd i)) ->
  (forall n e, In e steps -> fst (at_node (S n) (target _ _ e)) <= fst (behind n (edge_of e)) /\
                             snd (behind n (edge_of e)) <= snd (at_node (S n) (target _ _ e))) ->
  forall l e s h n t, between (at_node n s) h -> path node label s (l ++ [e]) t -> incl (l ++ [e]) steps ->
  between (behind (length l + n) (edge_of e)) (fold_left (fun h d => next k (flag d) (stored d) h) (l ++ [e]) h).
Proof.
  intros O B A l e s h n t H P I.
  apply (along_paths node label R (fun d h => next k (flag d) (stored d) h) (fun n s => between (at_node n s))
    (fun n e => between (behind n (edge_of e))) steps) with (s := s) (t := t); try assumption.
  - clear - O B. intros n e h I H. destruct (O e I) as [Oe C]. destruct (B n e I) as [B0 B1].
    unfold between in *. apply one_more_step with (fst (of (edge_of e))) (snd (of (edge_of e)))
      (fst (at_node n (source _ _ e))) (snd (at_node n (source _ _ e))); try assumption; intros E; rewrite E in C; auto.
  - intros m d g J G. destruct (A m d J). unfold between in *. lra.
Qed.
End Bounds.

(* Lemma of memories: states of one kind whose flags are the same at every position, and where one stores s times what
   the other does, are s times each other; what stores 0 is 0. *)
Theorem equal_states k (s : R) l : held k (map (fun p => (fst p, s * snd p)) l) = s * held k l.
Proof.
  unfold held. replace 0 with (s * 0) at 1 by ring. generalize 0 as h.
  induction l as [|[f x] l IH]; intros h; simpl; [reflexivity|]. rewrite <- IH. f_equal. destruct k, f; simpl; ring.
Qed.
