(* Totals by a potential: what verify/kernel/language.py checks of a claim, letter by letter and edge by edge. *)

From Coq Require Import Arith Reals List Lra Lia.
From Lemmas Require Import Sums Totals.
Import ListNotations.
Open Scope R_scope.

Section Potential.
Variables node letter edge : Type.
Hypothesis same_edge : forall e d : edge, {e = d} + {e <> d}.
Variables (begin finish : edge -> node) (letters : edge -> list letter).

(* A path of the language, with the letter that it takes on each edge. *)
Inductive walk : node -> sequence edge letter -> node -> Prop :=
  | walk_nil s : walk s [] s
  | walk_cons e a p t : walk (finish e) p t -> walk (begin e) ((e, a) :: p) t.

Notation on := (at_edge edge letter same_edge).

Lemma on_cons e x p d : on d ((e, x) :: p) = if same_edge e d then x :: on d p else on d p.
Proof. unfold at_edge. simpl. now destruct (same_edge e d). Qed.

(* Σ over a path, edge by edge, of what may depend on the edge. *)
Lemma edge_by_edge (f : edge -> letter -> R) edges p : NoDup edges -> (forall s, In s p -> In (fst s) edges) ->
  sum (map (fun s => f (fst s) (snd s)) p) = sum (map (fun e => sum (map (f e) (on e p))) edges).
Proof.
  intros N. induction p as [|[e x] p IH]; intros H; simpl.
  - clear H N. induction edges as [|e edges IH]; simpl; [reflexivity|rewrite <- IH; ring].
  - rewrite IH by (intros s Hs; apply H; now right). clear IH.
    assert (I : In e edges) by (apply (H (e, x)); now left). clear H.
    induction N as [|d edges Hd N IH]; [contradiction|]. simpl. rewrite on_cons. destruct (same_edge e d) as [<-|D].
    + replace (map (fun c => sum (map (f c) (on c ((e, x) :: p)))) edges) with (map (fun c => sum (map (f c) (on c
      p))) edges).
      * simpl. ring.
      * apply map_ext_in. intros c Hc. rewrite on_cons. destruct (same_edge e c) as [->|]; [contradiction|reflexivity].
    + destruct I as [->|I]; [now destruct D|]. rewrite <- IH by assumption. ring.
Qed.

Variables (amount : letter -> R) (cost : R) (height : node -> R) (charged : edge -> Prop).
Definition allowed (e : edge) : R := cost + height (begin e) - height (finish e).
Definition over (e : edge) (a : letter) : R := Rmax (amount a - allowed e) 0.

Lemma falls s p t : walk s p t ->
  sum (map (fun x => amount (snd x)) p) <=
  INR (length p) * cost + height s - height t + sum (map (fun x => over (fst x) (snd x)) p).
Proof.
  induction 1 as [s|e a p t W IH]; [simpl; lra|].
  change (length ((e, a) :: p)) with (S (length p)). rewrite S_INR. simpl.
  pose proof (Rmax_l (amount a - allowed e) 0). unfold over, allowed in *. lra.
Qed.

(* Lemma of totals: with heights φ ≥ 0 of the states, where a letter adds more than `allowed` on charged edges only, and
   each of those takes every letter once at most. *)
Theorem potential edges longest s p t : NoDup edges ->
  walk s p t -> (forall x, In x p -> In (fst x) edges /\ In (snd x) (letters (fst x))) -> INR (length p) <= longest ->
  0 <= cost -> (forall n, 0 <= height n) ->
  (forall e a, In e edges -> In a (letters e) -> charged e \/ amount a <= allowed e) ->
  (forall e, charged e -> NoDup (on e p)) ->
  sum (map (fun x => amount (snd x)) p) <=
  longest * cost + height s + sum (map (fun e => sum (map (over e) (letters e))) edges).
Proof.
  intros N W I L C H K D. pose proof (falls s p t W) as F. pose proof (H t).
  assert (INR (length p) * cost <= longest * cost) by now apply Rmult_le_compat_r.
  enough (sum (map (fun x => over (fst x) (snd x)) p) <= sum (map (fun e => sum (map (over e) (letters e))) edges)) by
    lra.
  rewrite (edge_by_edge over edges p N) by (intros x Hx; now apply I).
  assert (P : forall e a, 0 <= over e a) by (intros e a; apply Rmax_r).
  assert (J : forall e, incl (on e p) (letters e)).
  { intros e a Ha. unfold at_edge in Ha. apply in_map_iff in Ha as ([d b] & <- & Hb). apply filter_In in Hb as [Hb E].
    simpl in E. destruct (same_edge d e) as [<-|]; [|discriminate]. now apply (I (d, b)). }
  apply sum_map_le. intros e He.
  assert (Z : charged e \/ forall a, In a (letters e) -> over e a = 0).
  { assert (G : forall l, incl l (letters e) -> charged e \/ forall a, In a l -> over e a = 0).
    { induction l as [|a l IH]; intros Q; [right; intros a []|].
      destruct IH as [IH|IH]; [intros b Hb; apply Q; now right|now left|].
      destruct (K e a He) as [Ch|Ch]; [apply Q; now left|now left|right].
      intros b [<-|Hb]; [unfold over; apply Rmax_right; lra|now apply IH]. }
    apply G, incl_refl. }
  destruct Z as [Ch|Z].
  - apply sum_distinct; [apply P|now apply D|apply J].
  - apply Rle_trans with 0.
    + enough (E : sum (map (over e) (on e p)) = 0) by lra.
      assert (Q : forall l, incl l (letters e) -> sum (map (over e) l) = 0).
      { induction l as [|a l IH]; intros Q; [reflexivity|]. simpl. rewrite Z, IH; [ring| |apply Q; now left].
        intros b Hb. apply Q. now right. }
      apply Q, J.
    + apply sum_nonneg. intros x Hx. apply in_map_iff in Hx as (a & <- & _). apply P.
Qed.
End Potential.

(* What a majorant of tables, each read some positions back, leaves of a sum: position t of n has the letter `word t`.
  *)
Section Majorant.
Variable letter : Type.
Variables (word : nat -> letter) (n : nat).
Definition row := ((letter -> R) * nat * R)%type.
Definition table_of (r : row) : letter -> R := fst (fst r).
Definition lag_of (r : row) : nat := snd (fst r).
Definition seen (r : row) (t : nat) : R := if (lag_of r <=? t)%nat then table_of r (word (t - lag_of r)) else 0.
Definition total_of (f : nat -> R) : R := sum (map f (seq 0 n)).

Lemma total_plus f g : total_of (fun t => f t + g t) = total_of f + total_of g.
Proof. apply sum_map_plus. Qed.

Lemma total_scaled c f : total_of (fun t => c * f t) = c * total_of f.
Proof. unfold total_of. induction (seq 0 n) as [|t l IH]; simpl; [ring|rewrite IH; ring]. Qed.

(* Lemmas of totals and of windows: a function ≥ 0 of the letter some positions back adds up to no more than that of the
   letter itself. *)
Theorem seen_earlier f lag : (forall a, 0 <= f a) ->
  total_of (fun t => if (lag <=? t)%nat then f (word (t - lag)) else 0) <= total_of (fun t => f (word t)).
Proof.
  intros F. unfold total_of. assert (E : forall m, sum (map (fun t => if (lag <=? t)%nat then f (word (t - lag)) else
    0) (seq 0 m)) =
    sum (map (fun t => f (word t)) (seq 0 (m - lag)))).
  { induction m as [|m IH]; [reflexivity|]. rewrite seq_S, map_app, sum_app, IH. simpl plus. cbn [map sum fold_right].
    destruct (Nat.leb_spec lag m) as [L|L].
    - replace (S m - lag)%nat with (S (m - lag)) by lia. rewrite seq_S, map_app, sum_app. simpl. ring.
    - replace (S m - lag)%nat with (m - lag)%nat by lia. simpl. ring. }
  rewrite E. destruct (Nat.le_exists_sub (n - lag) n ltac:(lia)) as (k & K & _). rewrite K at 2. rewrite Nat.add_comm,
    seq_app, map_app, sum_app.
  enough (0 <= sum (map (fun t => f (word t)) (seq (0 + (n - lag)) k))) by lra.
  apply sum_nonneg. intros x Hx. apply in_map_iff in Hx as (t & <- & _). apply F.
Qed.

(* So a running sum of what a majorant bounds is a sum of terms whose positive ones add up to no more than T, and its
   negative ones too, which is what exact sums need. *)
Theorem total_by_a_majorant (m : nat -> R) (rows : list row) top :
  (forall r, In r rows -> (forall a, 0 <= table_of r a) /\ 0 <= snd r) ->
  (forall t, (t < n)%nat -> Rabs (m t) <= sum (map (fun r => snd r * seen r t) rows)) ->
  total_of (fun t => sum (map (fun r => snd r * table_of r (word t)) rows)) <= top ->
  let l := map m (seq 0 n) in above l <= top /\ under l <= top /\ ((forall t, (t < n)%nat -> 0 <= m t) -> under l = 0).
Proof.
  intros P B T l.
  assert (S : total_of (fun t => Rabs (m t)) <= top).
  { apply Rle_trans with (2 := T). apply Rle_trans with (total_of (fun t => sum (map (fun r => snd r * seen r t)
    rows))).
    - apply sum_map_le. intros t Ht. apply in_seq in Ht. apply B. lia.
    - clear B T l. induction rows as [|r rs IH]; [simpl; lra|]. simpl. rewrite !total_plus, !total_scaled.
      destruct (P r (or_introl eq_refl)) as [P1 P2].
      assert (snd r * total_of (seen r) <= snd r * total_of (fun t => table_of r (word t)))
        by (apply Rmult_le_compat_l; [exact P2|now apply seen_earlier]).
      specialize (IH (fun q Hq => P q (or_intror Hq))). lra. }
  unfold above, under, l. rewrite !map_map. repeat split.
  - apply Rle_trans with (2 := S). apply sum_map_le. intros t _. pose proof (Rle_abs (m t)). pose proof (Rabs_pos (m
    t)).
    now apply Rmax_lub.
  - apply Rle_trans with (2 := S). apply sum_map_le. intros t _. pose proof (Rle_abs (- m t)). rewrite Rabs_Ropp in *.
    pose proof (Rabs_pos (m t)). now apply Rmax_lub.
  - intros Q. assert (E : forall k, (forall t, In t k -> (t < n)%nat) -> sum (map (fun t => Rmax (- m t) 0) k) = 0).
    { induction k as [|t k IH]; intros I; [reflexivity|]. simpl. rewrite IH by (intros u Hu; apply I; now right).
      rewrite Rmax_right; [ring|]. pose proof (Q t (I t (or_introl eq_refl))). lra. }
    apply E. intros t Ht. apply in_seq in Ht. lia.
Qed.
End Majorant.
