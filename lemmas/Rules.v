(* Rules over scores: the first whose flag is 1 decides. *)

From Coq Require Import Arith Bool Reals List Lra Lia.
From Lemmas Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Section Rules.
Variable token : Type.
Hypothesis same : forall a b : token, {a = b} + {a <> b}.
Variable score : token -> R.
Variable weight : R.   (* W: what the last rule adds *)

(* A rule: its token, and whether its flag is 1 here. Each adds twice what the one behind it adds. *)
Fixpoint added (rules : list (token * bool)) (u : token) : R :=
  match rules with
  | [] => 0
  | (t, f) :: l => (if f then if same t u then 2 ^ length l * weight else 0 else 0) + added l u
  end.

Fixpoint decided (rules : list (token * bool)) : option token :=
  match rules with [] => None | (t, f) :: l => if f then Some t else decided l end.

Lemma added_within l u : 0 <= weight -> 0 <= added l u <= (2 ^ length l - 1) * weight.
Proof.
  intros W. induction l as [|[t f] l IH]; simpl; [lra|].
  assert (P : 0 <= 2 ^ length l * weight) by (apply Rmult_le_pos; [apply pow_le; lra|exact W]).
  destruct f; [destruct (same t u)|]; lra.
Qed.

(* Lemma of rules over scores: whatever W is, if it exceeds every lead over a token with a rule, the token of the first
   rule whose flag is 1 scores highest; and where none is, the scores are as they were. *)
Theorem first_rule_decides rules : (forall t f u, In (t, f) rules -> score u - score t < weight) ->
  match decided rules with
  | Some t => forall u, u <> t -> score u + added rules u < score t + added rules t
  | None => forall u, added rules u = 0
  end.
Proof.
  induction rules as [|[t f] l IH]; intros H; simpl; [reflexivity|]. destruct f.
  - intros u D. pose proof (H t true u (or_introl eq_refl)) as L. pose proof (H t true t (or_introl eq_refl)) as W.
    assert (W0 : 0 <= weight) by lra. pose proof (added_within l u W0). pose proof (added_within l t W0).
    destruct (same t t); [|easy]. destruct (same t u); [congruence|]. lra.
  - specialize (IH (fun s g u I => H s g u (or_intror I))). destruct (decided l).
    + intros u D. specialize (IH u D). lra.
    + intros u. rewrite IH. ring.
Qed.
End Rules.
