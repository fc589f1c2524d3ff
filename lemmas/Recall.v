(* What a query reads of all pairs that are stored, and who leads then. *)

From Coq Require Import Arith Reals List Lra Lia.
From Lemmas Require Import Sums Totals Readout.
Import ListNotations.
Open Scope R_scope.

Section Recall.
Variables key value : Type.
Hypothesis same_key : forall a b : key, {a = b} + {a <> b}.
Notation pair := (key * value)%type.

Definition of_key (k : key) (l : list pair) : list pair := filter (fun p => if same_key (fst p) k then true else
  false) l.

Lemma of_key_cons p k l : of_key k (p :: l) = if same_key (fst p) k then p :: of_key k l else of_key k l.
Proof. unfold of_key. simpl. now destruct (same_key (fst p) k). Qed.

(* Σ over pairs, key by key. *)
Lemma key_by_key (f : pair -> R) keys l : NoDup keys -> (forall p, In p l -> In (fst p) keys) ->
  sum (map f l) = sum (map (fun k => sum (map f (of_key k l))) keys).
Proof.
  intros N. induction l as [|p l IH]; intros H.
  - simpl. clear. induction keys as [|k keys IH]; simpl; [reflexivity|rewrite <- IH; ring].
  - cbn [map sum fold_right]. fold (sum (map f l)). rewrite IH by (intros q Hq; apply H; now right). clear IH.
    assert (I : In (fst p) keys) by (apply H; now left). clear H.
    induction N as [|k keys Nk N IH]; [contradiction|]. cbn [map sum fold_right]. rewrite of_key_cons.
    fold (sum (map (fun k => sum (map f (of_key k l))) keys)) (sum (map (fun k => sum (map f (of_key k (p :: l))))
      keys)).
    destruct (same_key (fst p) k) as [E|D].
    + replace (map (fun k0 => sum (map f (of_key k0 (p :: l)))) keys) with (map (fun k0 => sum (map f (of_key k0 l)))
      keys).
      * simpl. ring.
      * apply map_ext_in. intros c Hc. rewrite of_key_cons.
        destruct (same_key (fst p) c) as [E'|]; [exfalso; apply Nk; congruence|reflexivity].
    + destruct I as [I|I]; [now destruct D|]. rewrite <- IH by assumption. ring.
Qed.

(* Lemma of recall: how much the weights of other keys' pairs add up to, where a sequence holds m(k) pairs of key k at
   most. *)
Theorem others_add_up_to (alpha most : key -> R) keys (q : key) l : NoDup keys -> (forall p, In p l -> In (fst p)
  keys) ->
  (forall k, INR (length (of_key k l)) <= most k) -> (forall k, 0 <= most k) ->
  sum (map (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) l) <=
  sum (map (fun k => if same_key k q then 0 else most k * Rabs (alpha k)) keys).
Proof.
  intros N I M P. rewrite (key_by_key (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) keys l N I).
  apply sum_map_le. intros k _.
  assert (E : forall m : list pair, (forall p, In p m -> fst p = k) ->
    sum (map (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) m) =
    INR (length m) * (if same_key k q then 0 else Rabs (alpha k))).
  { induction m as [|p m IH]; intros H; [simpl; ring|]. change (length (p :: m)) with (S (length m)). rewrite S_INR.
    cbn [map sum fold_right]. fold (sum (map (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) m)).
    rewrite IH by (intros r Hr; apply H; now right). rewrite (H p (or_introl eq_refl)).
    destruct (same_key k q); [rewrite Rabs_R0|]; ring. }
  rewrite E.
  - destruct (same_key k q); [lra|]. apply Rmult_le_compat_r; [apply Rabs_pos|apply M].
  - intros p Hp. unfold of_key in Hp. apply filter_In in Hp as [_ Hp]. destruct (same_key (fst p) k); congruence.
Qed.

(* What the scores read of pairs: the pair of a key adds α(key) times what its value gives each letter. *)
Variable letter : Type.
Variable G : letter -> value -> R.
Definition score (alpha : key -> R) (l : list pair) (u : letter) : R := sum (map (fun p => alpha (fst p) * G u (snd
  p)) l).

Lemma score_split alpha l u p m n : l = m ++ p :: n -> score alpha l u = alpha (fst p) * G u (snd p) + score alpha (m
  ++ n) u.
Proof. intros ->. unfold score. rewrite !map_app, !sum_app. simpl. ring. Qed.

(* Lemma of recall: the small kernel's check. Of the query's key there is one pair, with the value v, whose letter is
  w; of
   others at most as many as `others_add_up_to` bounds. Then the letter w leads over u. *)
Theorem recall_leads alpha (q : key) (v : value) (w u : letter) l m n low others noise :
  l = m ++ (q, v) :: n -> (forall p, In p (m ++ n) -> fst p <> q) ->
  sum (map (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) l) <= others ->
  (forall x, Rabs (G w x - G u x) <= noise) ->
  low <= alpha q -> 0 < low -> others * noise < low * (G w v - G u v) -> score alpha l u < score alpha l w.
Proof.
  intros E D O N L L0 H. rewrite !(score_split alpha l _ (q, v) m n E). simpl fst. simpl snd.
  assert (N0 : 0 <= noise) by (apply Rle_trans with (2 := N v), Rabs_pos).
  assert (S : Rabs (score alpha (m ++ n) w - score alpha (m ++ n) u) <= others * noise).
  { apply Rle_trans with (sum (map (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) (m ++ n)) * noise).
    - clear E O. unfold score. induction (m ++ n) as [|p k IH]; [simpl; rewrite Rminus_0_r, Rabs_R0; lra|].
      cbn [map sum fold_right].
      fold (sum (map (fun p => alpha (fst p) * G w (snd p)) k)) (sum (map (fun p => alpha (fst p) * G u (snd p)) k)).
      fold (sum (map (fun p => Rabs (if same_key (fst p) q then 0 else alpha (fst p))) k)).
      specialize (IH (fun r Hr => D r (or_intror Hr))).
      destruct (same_key (fst p) q) as [F|_]; [destruct (D p (or_introl eq_refl) F)|].
      set (a := alpha (fst p)). set (x := G w (snd p)). set (y := G u (snd p)).
      set (sw := sum (map (fun p => alpha (fst p) * G w (snd p)) k)) in *.
      set (su := sum (map (fun p => alpha (fst p) * G u (snd p)) k)) in *.
      replace (a * x + sw - (a * y + su)) with (a * (x - y) + (sw - su)) by ring.
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult.
      assert (Rabs a * Rabs (x - y) <= Rabs a * noise) by (apply Rmult_le_compat_l; [apply Rabs_pos|apply N]).
      lra.
    - apply Rmult_le_compat_r; [exact N0|]. apply Rle_trans with (2 := O). rewrite E, !map_app, !sum_app. simpl.
      pose proof (Rabs_pos (if same_key q q then 0 else alpha q)). lra. }
  assert (O0 : 0 <= others) by (apply Rle_trans with (2 := O); apply sum_nonneg; intros x Hx; apply in_map_iff in Hx
    as (p & <- & _); apply Rabs_pos).
  assert (0 <= others * noise) by now apply Rmult_le_pos.
  assert (0 < G w v - G u v) by (apply Rmult_lt_reg_l with low; lra).
  assert (low * (G w v - G u v) <= alpha q * (G w v - G u v)) by (apply Rmult_le_compat_r; lra).
  unfold Rabs in S. destruct (Rcase_abs _) in S; lra.
Qed.
End Recall.
