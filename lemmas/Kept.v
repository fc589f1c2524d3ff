(* What a latch keeps whose flag is a function of the position, or of the letter before. *)

From Coq Require Import Arith Bool Reals List Lra Lia.
From Lemmas Require Import Sums Identities.
Import ListNotations.
Open Scope R_scope.

(* A latch at position t = 1, 2, …: what was stored at the last position whose flag was 1. *)
Section Latch.
Variable flag : nat -> bool.
Variable stored : nat -> R.
Fixpoint latch (t : nat) : R :=
  match t with O => 0 | S s => if flag (S s) then stored (S s) else latch s end.

Lemma unopened s t : (s <= t)%nat -> (forall u, (s < u <= t)%nat -> flag u = false) -> latch t = latch s.
Proof.
  induction 1 as [|t L IH]; intros H; [reflexivity|]. simpl. rewrite H by lia. apply IH. intros u Hu. apply H. lia.
Qed.

(* Lemma of kept letters: open up to position n and never again, it holds what stood at n from there on. *)
Theorem kept_letters n t : (1 <= n <= t)%nat -> (forall u, (1 <= u)%nat -> flag u = (u <=? n)%nat) -> latch t = stored
  n.
Proof.
  intros N F. rewrite (unopened n t) by (try lia; intros u Hu; rewrite F by lia; apply Nat.leb_gt; lia).
  destruct n as [|n]; [lia|]. simpl. rewrite F by lia. now rewrite Nat.leb_refl.
Qed.

(* Where it is open exactly behind a letter k, it holds what stood behind k the last time, and 0 where there was none.
  *)
Theorem behind_a_letter (letter : Type) (same : forall a b : letter, {a = b} + {a <> b}) (word : nat -> letter) k t :
  (forall u, flag u = (2 <=? u)%nat && if same (word (u - 1)%nat) k then true else false) ->
  (exists s, (2 <= s <= t)%nat /\ word (s - 1)%nat = k /\ (forall u, (s < u <= t)%nat -> word (u - 1)%nat <> k) /\
    latch t = stored s) \/
  ((forall u, (2 <= u <= t)%nat -> word (u - 1)%nat <> k) /\ latch t = 0).
Proof.
  intros F. induction t as [|t IH]; [right; split; [intros; lia|reflexivity]|]. simpl latch. rewrite F.
  destruct (Nat.leb_spec 2 (S t)) as [L|L]; cbn [andb].
  - destruct (same (word (S t - 1)%nat) k) as [E|E].
    + left. exists (S t). split; [lia|]. split; [exact E|]. split; [intros; lia|reflexivity].
    + destruct IH as [(s & B & K & N & V)|[N V]].
      * left. exists s. split; [lia|]. split; [exact K|]. split; [|exact V]. intros u Hu.
        destruct (Nat.eq_dec u (S t)) as [->|D]; [exact E|apply N; lia].
      * right. split; [|exact V]. intros u Hu. destruct (Nat.eq_dec u (S t)) as [->|D]; [exact E|apply N; lia].
  - right. split; [intros; lia|]. destruct t; [reflexivity|lia].
Qed.
End Latch.

(* Lemma of one integer: a sum of ramps of one number is linear between two points with no breakpoint between them. *)
Theorem linear_between a s bends x0 x1 : (forall b, In b bends -> fst b <= x0 \/ x1 <= fst b) ->
  exists p r, forall x, x0 <= x <= x1 -> ramp a s bends x = p * x + r.
Proof.
  unfold ramp. induction bends as [|[c d] l IH]; intros H; [exists s, a; intros; simpl; lra|].
  destruct IH as (p & r & E); [intros b Hb; apply H; now right|].
  destruct (H (c, d) (or_introl eq_refl)) as [L|L]; simpl in L.
  - exists (p + d), (r - d * c). intros x X. specialize (E x X). simpl. rewrite Rmax_left by lra. lra.
  - exists p, r. intros x X. specialize (E x X). simpl. rewrite Rmax_right by lra. lra.
Qed.

(* So is what the scores are, a sum of them with weights; a lead that is positive at both ends of each piece is
  positive. *)
Theorem leads_on_a_piece (lanes : list (R * (R * R * list (R * R)))) x0 x1 x :
  (forall l b, In l lanes -> In b (snd (snd l)) -> fst b <= x0 \/ x1 <= fst b) -> x0 <= x <= x1 ->
  let lead y := sum (map (fun l => fst l * ramp (fst (fst (snd l))) (snd (fst (snd l))) (snd (snd l)) y) lanes) in
  0 < lead x0 -> 0 < lead x1 -> 0 < lead x.
Proof.
  intros H X lead.
  assert (L : exists p r, forall y, x0 <= y <= x1 -> lead y = p * y + r).
  { unfold lead. clear lead. induction lanes as [|[w [[a s] bends]] l IH]; [exists 0, 0; intros; simpl; lra|].
    destruct IH as (p & r & E); [intros m b Hm Hb; apply (H m b); [now right|exact Hb]|].
    destruct (linear_between a s bends x0 x1) as (q & u & F).
    - intros b Hb. apply (H (w, (a, s, bends)) b); [now left|exact Hb].
    - exists (w * q + p), (w * u + r). intros y Y. simpl. rewrite F, E by exact Y. ring. }
  destruct L as (p & r & E). rewrite !E by lra. intros A B. destruct (Rle_dec 0 p) as [P|P]; [|apply Rnot_le_lt in P];
    nra.
Qed.

(* Lemmas of one integer and of kept letters: a flag that is equal at both ends of a piece is constant there. *)
Theorem constant_on_a_piece a s bends x0 x1 x : (forall b, In b bends -> fst b <= x0 \/ x1 <= fst b) -> x0 <= x <= x1 ->
  ramp a s bends x0 = ramp a s bends x1 -> ramp a s bends x = ramp a s bends x0.
Proof.
  intros H X E. destruct (linear_between a s bends x0 x1 H) as (p & r & F). rewrite !F in * by lra.
  destruct (Req_dec x0 x1) as [Q|Q]; [replace x with x0 by lra; lra|].
  assert (P : p * (x1 - x0) = 0) by lra. apply Rmult_integral in P as [P|P]; [rewrite P; ring|lra].
Qed.
