(* Identities by which the checker sees two values to be equal, and bounds that follow from them. *)

From Coq Require Import ZArith Reals List Sorted Lra Lia.
From Lemmas Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* Lemma of differences: the running sum of the differences of f is f, which is 0 before the start. *)
Theorem differences (f : nat -> R) t : f O = 0 -> sum (map (fun s => f (S s) - f s) (seq 0 t)) = f t.
Proof.
  intros Z. induction t as [|t IH]; [now rewrite Z|]. rewrite seq_S, map_app, sum_app, IH. simpl. ring.
Qed.

(* Lemmas of two values and of what paths leave: φ(u + v), where v is one of a few values or such that it is y. *)
Theorem few_values (phi : R -> R) y u v values : NoDup values -> In v values \/ phi (u + v) = y ->
  phi (u + v) = y + sum (map (fun c => if Req_EM_T v c then phi (u + c) - y else 0) values).
Proof.
  intros N H. enough (E : sum (map (fun c => if Req_EM_T v c then phi (u + c) - y else 0) values) =
    if in_dec Req_EM_T v values then phi (u + v) - y else 0).
  { rewrite E. destruct (in_dec Req_EM_T v values) as [I|I]; [ring|]. destruct H; [contradiction|lra]. }
  clear H. induction N as [|c l Nc N IH]; [reflexivity|]. simpl sum. rewrite IH. clear IH.
  destruct (Req_EM_T v c) as [->|D], (in_dec Req_EM_T _ l) as [I|I], (in_dec Req_EM_T _ (_ :: l)) as [J|J];
    try ring; simpl in J; exfalso; intuition congruence.
Qed.

(* Lemma of first writes: w is 1 where something is written, n how often its key was written, this time included. *)
Theorem first_writes (w n : Z) : (w = 0 \/ w = 1)%Z -> (w <= n)%Z -> (2 * w - n = 1 <-> w = 1 /\ n = 1)%Z.
Proof. lia. Qed.

(* So a memory of first writes adds what is stored there. Positions have a key, w, and what is stored; a slot κ sees
  those
   whose key it is (keys are one-hot), and so counts the writes under its own key. *)
Fixpoint first_stored (k : nat) (l : list (nat * Z * R)) : R :=
  match l with
  | [] => 0
  | (c, w, x) :: l => if andb (c =? k)%nat (w =? 1)%Z then x else first_stored k l
  end.

Fixpoint added_up (k : nat) (n : Z) (l : list (nat * Z * R)) : R :=
  match l with
  | [] => 0
  | (c, w, x) :: l =>
      if (c =? k)%nat then (if (2 * w - (n + w) =? 1)%Z then x else 0) + added_up k (n + w) l else added_up k n l
  end.

Theorem first_writes_of_a_key k l : (forall c w x, In (c, w, x) l -> w = 0%Z \/ w = 1%Z) -> added_up k 0 l =
  first_stored k l.
Proof.
  intros H. assert (G : forall l n, (forall c w x, In (c, w, x) l -> w = 0%Z \/ w = 1%Z) -> (0 <= n)%Z ->
    added_up k n l = if (n =? 0)%Z then first_stored k l else 0).
  { clear. induction l as [|[[c w] x] l IH]; intros n H N; simpl added_up; simpl first_stored; [now destruct (n =?
    0)%Z|].
    assert (W : w = 0%Z \/ w = 1%Z) by (apply (H c w x); now left).
    assert (Hl : forall c w x, In (c, w, x) l -> w = 0%Z \/ w = 1%Z) by (intros; apply (H c0 w0 x0); now right).
    destruct (Nat.eqb_spec c k) as [->|D]; simpl andb; [|now apply IH].
    rewrite (IH (n + w)%Z Hl) by lia. destruct W as [-> | ->]; cbn [andb];
    repeat match goal with |- context [(?a =? ?b)%Z] => destruct (Z.eqb_spec a b); try lia end; ring. }
  now rewrite (G l 0%Z).
Qed.

(* Lemma of forms: x is the sum of its components at every position, so what adds c·Σ and f(x) adds c·x + f(x). *)
Theorem forms (f : R -> R) c x components : x = sum components ->
  sum (map (fun y => c * y) components) + f x = c * x + f x.
Proof.
  intros ->. f_equal. induction components as [|y l IH]; simpl; [ring|]. rewrite IH. ring.
Qed.

Theorem less_the_smaller y z : y - Rmin y z = Rmax (y - z) 0.
Proof. unfold Rmin, Rmax. destruct (Rle_dec y z), (Rle_dec (y - z) 0); lra. Qed.

(* Lemma of pieces: a ramp whose slopes rise is, everywhere, the largest of its lines. `bends` are the breakpoints in
   their order, each with what the slope rises by; the line behind the first n is what `line` makes of these. *)
Definition ramp (a s : R) (bends : list (R * R)) (x : R) : R :=
  a + s * x + sum (map (fun b => snd b * Rmax (x - fst b) 0) bends).
Definition line (a s : R) (bends : list (R * R)) (x : R) : R :=
  a + s * x + sum (map (fun b => snd b * (x - fst b)) bends).

Theorem no_line_is_above a s before behind x : (forall b, In b (before ++ behind) -> 0 <= snd b) ->
  line a s before x <= ramp a s (before ++ behind) x.
Proof.
  intros H. unfold line, ramp. rewrite map_app, sum_app.
  assert (A : sum (map (fun b => snd b * (x - fst b)) before) <= sum (map (fun b => snd b * Rmax (x - fst b) 0) before)).
  { induction before as [|b l IH]; simpl; [lra|].
    pose proof (H b (or_introl eq_refl)). pose proof (Rmax_l (x - fst b) 0).
    assert (snd b * (x - fst b) <= snd b * Rmax (x - fst b) 0) by (apply Rmult_le_compat_l; assumption).
    specialize (IH (fun c Hc => H c (or_intror Hc))). lra. }
  assert (B : 0 <= sum (map (fun b => snd b * Rmax (x - fst b) 0) behind)).
  { clear A. induction behind as [|b l IH]; simpl; [lra|].
    assert (0 <= snd b) by (apply H, in_or_app; right; now left). pose proof (Rmax_r (x - fst b) 0).
    assert (0 <= snd b * Rmax (x - fst b) 0) by now apply Rmult_le_pos.
    assert (0 <= sum (map (fun b => snd b * Rmax (x - fst b) 0) l)).
    { apply IH. intros c Hc. apply H, in_or_app. apply in_app_or in Hc as [Hc|Hc]; [auto|right; now right]. }
    lra. }
  lra.
Qed.

Theorem some_line_is_reached a s bends x : StronglySorted (fun b c => fst b <= fst c) bends ->
  exists before behind, bends = before ++ behind /\ ramp a s bends x = line a s before x.
Proof.
  unfold ramp, line. induction 1 as [|b l S IH F].
  - exists [], []. split; reflexivity.
  - destruct (Rle_dec (fst b) x) as [L|L].
    + destruct IH as (u & v & -> & E). exists (b :: u), v. split; [reflexivity|]. simpl. rewrite Rmax_left by lra. lra.
    + apply Rnot_le_lt in L. exists [], (b :: l). split; [reflexivity|]. simpl. rewrite Rmax_right by lra.
      assert (Z : sum (map (fun b => snd b * Rmax (x - fst b) 0) l) = 0).
      { clear S IH. induction F as [|c l Fc F IH]; simpl; [reflexivity|]. rewrite IH, Rmax_right by lra. ring. }
      rewrite Z. ring.
Qed.

(* One whose slopes fall is, everywhere, the least of its lines. *)
Definition turned_over (bends : list (R * R)) : list (R * R) := map (fun b => (fst b, - snd b)) bends.

Lemma ramp_turned_over a s bends x : ramp a s bends x = - ramp (- a) (- s) (turned_over bends) x.
Proof.
  unfold ramp, turned_over. rewrite map_map. simpl.
  assert (E : sum (map (fun b => - snd b * Rmax (x - fst b) 0) bends) = - sum (map (fun b => snd b * Rmax (x - fst b)
    0) bends)).
  { induction bends as [|b l IH]; simpl; [ring|rewrite IH; ring]. }
  rewrite E. ring.
Qed.

Lemma line_turned_over a s bends x : line a s bends x = - line (- a) (- s) (turned_over bends) x.
Proof.
  unfold line, turned_over. rewrite map_map. simpl.
  assert (E : sum (map (fun b => - snd b * (x - fst b)) bends) = - sum (map (fun b => snd b * (x - fst b)) bends)).
  { induction bends as [|b l IH]; simpl; [ring|rewrite IH; ring]. }
  rewrite E. ring.
Qed.

Theorem no_line_is_below a s before behind x : (forall b, In b (before ++ behind) -> snd b <= 0) ->
  ramp a s (before ++ behind) x <= line a s before x.
Proof.
  intros H. rewrite ramp_turned_over, line_turned_over. unfold turned_over at 1. rewrite map_app.
  apply Ropp_le_contravar. apply (no_line_is_above (- a) (- s) (turned_over before) (turned_over behind)).
  unfold turned_over. rewrite <- map_app. intros b Hb. apply in_map_iff in Hb as (c & <- & Hc). simpl.
  specialize (H c Hc). lra.
Qed.
