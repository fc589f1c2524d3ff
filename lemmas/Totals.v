(* How much can be added up along a path of the input language. *)

From Coq Require Import Arith Reals List Permutation Lra Lia.
From Lemmas Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Lemma sum_nonneg l : (forall x, In x l -> 0 <= x) -> 0 <= sum l.
Proof.
  induction l as [|x l IH]; simpl; intros H; [lra|].
  pose proof (H x (or_introl eq_refl)). assert (0 <= sum l) by (apply IH; intros y Hy; apply H; now right). lra.
Qed.

Lemma sum_map_le {A} (f g : A -> R) l : (forall x, In x l -> f x <= g x) -> sum (map f l) <= sum (map g l).
Proof.
  induction l as [|x l IH]; simpl; intros H; [lra|].
  pose proof (H x (or_introl eq_refl)). assert (sum (map f l) <= sum (map g l)) by (apply IH; auto). lra.
Qed.

Lemma sum_map_plus {A} (f g : A -> R) l : sum (map (fun x => f x + g x) l) = sum (map f l) + sum (map g l).
Proof. induction l as [|x l IH]; simpl; [lra|rewrite IH; lra]. Qed.

(* Distinct members of a list add up to no more than the list. *)
Lemma sum_distinct {A} (f : A -> R) l m : (forall x, 0 <= f x) -> NoDup l -> incl l m -> sum (map f l) <= sum (map f m).
Proof.
  intros F N. revert m. induction N as [|x l Hx N IH]; intros m I; simpl.
  - apply sum_nonneg. intros y Hy. apply in_map_iff in Hy as (z & <- & _). apply F.
  - destruct (in_split x m) as (u & v & ->); [apply I; now left|].
    rewrite map_app, sum_app. simpl. specialize (IH (u ++ v)). rewrite map_app, sum_app in IH.
    enough (sum (map f l) <= sum (map f u) + sum (map f v)) by lra. apply IH.
    intros y Hy. assert (Hy' : In y (u ++ x :: v)) by (apply I; now right).
    apply in_app_or in Hy' as [H|[->|H]]; [apply in_or_app; auto|contradiction|apply in_or_app; auto].
Qed.

Section Language.
Variables edge letter : Type.
Hypothesis same_edge : forall e d : edge, {e = d} + {e <> d}.
Variable letters : edge -> list letter.

(* A sequence with the edges that its path takes. *)
Definition sequence := list (edge * letter).
Definition at_edge (e : edge) (p : sequence) : list letter :=
  map snd (filter (fun s => if same_edge (fst s) e then true else false) p).

(* How an edge is bounded: its letters differ, it is taken once at most, or neither is known. *)
Inductive kind := Distinct | Once | Any.

Definition allows (k : edge -> kind) (p : sequence) : Prop :=
  forall e, incl (at_edge e p) (letters e) /\
    match k e with
    | Distinct => NoDup (at_edge e p)
    | Once => (length (at_edge e p) <= 1)%nat
    | Any => True
    end.

Definition edge_bound (f : letter -> R) (top : edge -> R) (longest : R) (k : edge -> kind) (e : edge) : R :=
  match k e with
  | Distinct => sum (map f (letters e))
  | Once => top e
  | Any => top e * longest
  end.

Lemma by_edges f edges p : NoDup edges -> (forall s, In s p -> In (fst s) edges) ->
  sum (map (fun s => f (snd s)) p) = sum (map (fun e => sum (map f (at_edge e p))) edges).
Proof.
  intros N. induction p as [|[e x] p IH]; intros H; simpl.
  - clear H N. induction edges as [|e edges IH]; simpl; [reflexivity|rewrite <- IH; ring].
  - rewrite IH by (intros s Hs; apply H; now right). clear IH.
    assert (I : In e edges) by (apply (H (e, x)); now left). clear H.
    induction N as [|d edges Hd N IH]; [contradiction|]. simpl.
    unfold at_edge at 3. simpl. destruct (same_edge e d) as [<-|D]; simpl; fold (at_edge e p).
    + assert (E : map (fun e0 => sum (map f (at_edge e0 ((e, x) :: p)))) edges =
                  map (fun e0 => sum (map f (at_edge e0 p))) edges).
      { apply map_ext_in. intros c Hc. unfold at_edge. simpl. destruct (same_edge e c) as [->|]; [contradiction|reflexivity]. }
      rewrite E. ring.
    + fold (at_edge d p). destruct I as [->|I]; [now destruct D|].
      apply Rplus_eq_reg_l with (- sum (map f (at_edge d p))).
      transitivity (f x + sum (map (fun e0 => sum (map f (at_edge e0 p))) edges)); [ring|]. rewrite IH by assumption. ring.
Qed.

Lemma sum_le_count (f : letter -> R) c l : (forall x, In x l -> f x <= c) -> sum (map f l) <= c * INR (length l).
Proof.
  induction l as [|x l IH]; intros H; [simpl; lra|].
  change (length (x :: l)) with (S (length l)). rewrite S_INR. simpl map. simpl sum.
  pose proof (H x (or_introl eq_refl)). assert (sum (map f l) <= c * INR (length l)) by (apply IH; intros; apply H; now right). lra.
Qed.

Lemma at_edge_length e p : (length (at_edge e p) <= length p)%nat.
Proof.
  unfold at_edge. rewrite map_length. induction p as [|s p IH]; simpl; [lia|].
  destruct (same_edge (fst s) e); simpl; lia.
Qed.

(* Lemma of totals: of a function f ≥ 0 of the letter, `top` being at least f on each edge's letters. *)
Theorem totals f top longest k edges p :
  (forall x, 0 <= f x) -> (forall e x, In x (letters e) -> f x <= top e) -> (forall e, 0 <= top e) ->
  NoDup edges -> (forall s, In s p -> In (fst s) edges) -> INR (length p) <= longest -> allows k p ->
  sum (map (fun s => f (snd s)) p) <= sum (map (edge_bound f top longest k) edges).
Proof.
  intros F T T0 N I L A. rewrite (by_edges f edges p N I). apply sum_map_le. intros e _.
  destruct (A e) as [J K]. unfold edge_bound. destruct (k e).
  - now apply sum_distinct.
  - apply Rle_trans with (top e * INR (length (at_edge e p))).
    + apply sum_le_count. intros x Hx. apply T, J, Hx.
    + apply le_INR in K. simpl in K. rewrite <- (Rmult_1_r (top e)) at 2. now apply Rmult_le_compat_l.
  - apply Rle_trans with (top e * INR (length (at_edge e p))).
    + apply sum_le_count. intros x Hx. apply T, J, Hx.
    + apply Rmult_le_compat_l; [apply T0|]. apply Rle_trans with (2 := L), le_INR, at_edge_length.
Qed.
End Language.

(* Paths of a graph whose edges are (from, letter, to). *)
Section Graph.
Variables node letter : Type.
Definition arc := (node * letter * node)%type.
Definition source (e : arc) : node := fst (fst e).
Definition target (e : arc) : node := snd e.

Inductive path : node -> list arc -> node -> Prop :=
  | path_nil s : path s [] s
  | path_cons e l t : path (target e) l t -> path (source e) (e :: l) t.

Lemma path_app s l m t : path s (l ++ m) t -> exists u, path s l u /\ path u m t.
Proof.
  revert s. induction l as [|e l IH]; simpl; intros s P; [exists s; split; [constructor|exact P]|].
  inversion P as [|e' l' t' P']; subst. destruct (IH _ P') as (u & A & B). exists u. split; [now constructor|exact B].
Qed.

(* Lemma of edges: one that a path takes twice is part of a cycle: its end leads back to its beginning. *)
Theorem taken_twice_on_a_cycle s t l e m n : path s (l ++ e :: m ++ e :: n) t -> exists c, path (target e) c (source e).
Proof.
  intros P. apply path_app in P as (u & _ & P). inversion P as [|? ? ? P']; subst.
  apply path_app in P' as (v & A & B). inversion B; subst. now exists m.
Qed.

(* Lemma of edges: what one more step keeps holds along every path. `at_node n` is what may be at a state after n
   positions, `at_arc n` what may be behind an edge then; one and the same for all n is an inductive bound. *)
Variable value : Type.
Variable run : arc -> value -> value.
Variable at_node : nat -> node -> value -> Prop.
Variable at_arc : nat -> arc -> value -> Prop.

Theorem along_paths arcs :
  (forall n e h, In e arcs -> at_node n (source e) h -> at_arc n e (run e h)) ->
  (forall n e h, In e arcs -> at_arc n e h -> at_node (S n) (target e) h) ->
  forall l e s h n t, at_node n s h -> path s (l ++ [e]) t -> incl (l ++ [e]) arcs ->
  at_arc (length l + n) e (fold_left (fun x d => run d x) (l ++ [e]) h).
Proof.
  intros A B. induction l as [|d l IH]; simpl; intros e s h n t H P I; inversion P; subst.
  - apply A; [apply I; now left|exact H].
  - rewrite plus_n_Sm. apply IH with (s := target d) (t := t); try assumption.
    + apply B; [apply I; now left|]. apply A; [apply I; now left|exact H].
    + intros x Hx. apply I. now right.
Qed.
End Graph.

(* Lemma of windows: φ(Σ f_j) by functions of one letter each; the triples are (f_j, b_j, max f_j), in any order. *)
Section Windows.
Variable phi : R -> R.
Hypothesis rising : forall x y, x <= y -> phi x <= phi y.
Hypothesis positive : forall x, 0 <= phi x.

Definition values (l : list (R * R * R)) : R := sum (map (fun p => fst (fst p)) l).
Definition bases (l : list (R * R * R)) : R := sum (map (fun p => snd (fst p)) l).
Definition tops (l : list (R * R * R)) : R := sum (map snd l).

Fixpoint split_up (done : R) (l : list (R * R * R)) : R :=
  match l with
  | [] => 0
  | (f, b, m) :: l => (if Rlt_dec b f then phi (done + f + tops l) else 0) + split_up (done + b) l
  end.

Lemma split_up_positive done l : 0 <= split_up done l.
Proof.
  revert done. induction l as [|[[f b] m] l IH]; intros done; simpl; [lra|].
  pose proof (IH (done + b)). destruct (Rlt_dec b f); [pose proof (positive (done + f + tops l))|]; lra.
Qed.

Theorem windows fixed l : (forall p, In p l -> fst (fst p) <= snd p) ->
  phi (fixed + values l) <= phi (fixed + bases l) + split_up fixed l.
Proof.
  revert fixed. induction l as [|[[f b] m] l IH]; intros fixed H; cbn; [lra|].
  fold (values l) (bases l) (tops l).
  assert (Hl : forall p, In p l -> fst (fst p) <= snd p) by (intros p Hp; apply H; now right).
  pose proof (split_up_positive (fixed + b) l). destruct (Rlt_dec b f).
  - assert (values l <= tops l) by (apply sum_map_le; exact Hl).
    assert (phi (fixed + (f + values l)) <= phi (fixed + f + tops l)) by (apply rising; lra).
    pose proof (positive (fixed + (b + bases l))). lra.
  - apply Rnot_lt_le in n. specialize (IH (fixed + b) Hl). rewrite <- !Rplus_assoc.
    assert (phi (fixed + f + values l) <= phi (fixed + b + values l)) by (apply rising; lra). lra.
Qed.
End Windows.

(* Lemma of writes that stop themselves: κ is the column, w what the memory W stores, x̂ = φ(A − λW). Σ_t κ·x̂ is at
   most max κ · Σ_(j ≥ 1) φ(max A − λ·j·γβ·κ_min²·w_min), where each j stands for one position at most. *)
Section Stops.
Variable phi : R -> R.
Hypothesis rising : forall x y, x <= y -> phi x <= phi y.
Hypothesis positive : forall x, 0 <= phi x.
Variables (top lambda beta gamma least_column most_column least_write : R) (column write memory drive : nat -> R).

Fixpoint upto (f : nat -> R) (n : nat) : R := match n with O => 0 | S n => upto f n + f n end.
Let fall := gamma * beta * (least_column * least_column) * least_write.

Theorem writes_that_stop_themselves n :
  0 <= lambda -> 0 <= beta -> 0 <= gamma -> 0 <= least_column -> 0 <= least_write -> 0 <= most_column ->
  (forall t, 0 <= drive t) -> (forall t, write t = 0 -> drive t = 0) ->
  (forall t, column t = 0 \/ least_column <= column t <= most_column) ->
  (forall t, write t = 0 \/ least_write <= write t) ->
  (forall t, gamma * column t * upto (fun s => beta * column s * write s) (S t) <= memory t) ->
  (forall t, drive t <= phi (top - lambda * memory t)) ->
  exists m, (m <= n)%nat /\
    upto (fun t => column t * drive t) n <= most_column * upto (fun j => phi (top - lambda * (INR (S j) * fall))) m.
Proof.
  intros L B G C W M D0 DW CC WW MM DD.
  assert (W0 : forall t, 0 <= write t) by (intros t; destruct (WW t); lra).
  assert (C0 : forall t, 0 <= column t) by (intros t; destruct (CC t); lra).
  enough (H : exists m, (m <= n)%nat /\
    INR m * (beta * least_column * least_write) <= upto (fun s => beta * column s * write s) n /\
    upto (fun t => column t * drive t) n <= most_column * upto (fun j => phi (top - lambda * (INR (S j) * fall))) m)
    by (destruct H as (m & A & _ & E); now exists m).
  induction n as [|n (m & Hm & Hw & Hx)]; [exists O; simpl; split; [lia|split; lra]|].
  assert (P : 0 <= beta * column n * write n) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; auto).
  destruct (CC n) as [E|[CL CU]]; [|destruct (WW n) as [E|WL]].
  - exists m. simpl. rewrite !E, Rmult_0_r, !Rmult_0_l, !Rplus_0_r. now split; [lia|].
  - exists m. simpl. rewrite (DW n E), E, !Rmult_0_r, !Rplus_0_r. now split; [lia|].
  - exists (S m). cbn [upto]. rewrite !S_INR. split; [lia|].
    assert (Q : beta * least_column * least_write <= beta * column n * write n).
    { apply Rmult_le_compat; [apply Rmult_le_pos| | |]; auto. now apply Rmult_le_compat_l. }
    split; [lra|]. rewrite Rmult_plus_distr_l. apply Rplus_le_compat; [exact Hx|].
    apply Rmult_le_compat; [apply C0|apply D0|exact CU|]. apply Rle_trans with (1 := DD n), rising.
    apply Rplus_le_compat_l, Ropp_le_contravar, Rmult_le_compat_l; [exact L|].
    apply Rle_trans with (2 := MM n). unfold fall. cbn [upto].
    replace ((INR m + 1) * (gamma * beta * (least_column * least_column) * least_write))
      with (gamma * least_column * ((INR m + 1) * (beta * least_column * least_write))) by ring.
    apply Rmult_le_compat.
    + now apply Rmult_le_pos.
    + apply Rmult_le_pos; [pose proof (pos_INR m); lra|repeat apply Rmult_le_pos; assumption].
    + now apply Rmult_le_compat_l.
    + lra.
Qed.
End Stops.

(* What stops itself. Each step is what a counter rises by, b, and what is added, m: that is 0 unless the counter rises
   and is below `stop` behind the step, and then at most f of the counter. *)
Fixpoint counted (s : nat) (steps : list (nat * R)) : list (nat * nat * R) :=
  match steps with [] => [] | (b, m) :: l => (s + b, b, m)%nat :: counted (s + b) l end.

Lemma later_counts (f : nat -> R) s t stop : (forall n, 0 <= f n) -> (s <= t)%nat ->
  sum (map f (seq t (stop - t))) <= sum (map f (seq s (stop - s))).
Proof.
  intros F L. apply sum_distinct; [exact F|apply seq_NoDup|]. intros n H. apply in_seq in H. apply in_seq. lia.
Qed.

Theorem stopped_by_a_count f stop s steps : (forall n, 0 <= f n) ->
  (forall c b m, In (c, b, m) (counted s steps) -> m = 0 \/ (0 < b)%nat /\ (c < stop)%nat /\ Rabs m <= f c) ->
  sum (map (fun x => Rabs (snd x)) steps) <= sum (map f (seq (S s) (stop - S s))).
Proof.
  intros F. revert s. induction steps as [|[b m] l IH]; intros s H; simpl.
  - apply sum_nonneg. intros x Hx. apply in_map_iff in Hx as (n & <- & _). apply F.
  - assert (T : sum (map (fun x => Rabs (snd x)) l) <= sum (map f (seq (S (s + b)) (stop - S (s + b))))).
    { apply IH. intros c d n I. apply H. now right. }
    destruct (H (s + b)%nat b m (or_introl eq_refl)) as [->|(B & L & M)].
    + rewrite Rabs_R0. pose proof (later_counts f (S s) (S (s + b)) stop F ltac:(lia)). lra.
    + pose proof (later_counts f (S s) (s + b) stop F ltac:(lia)) as Q.
      replace (stop - (s + b))%nat with (S (stop - S (s + b))) in Q by lia. simpl in Q. lra.
Qed.
