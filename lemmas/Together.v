(* Machines of finitely many states: several as one, and one with fewer states. *)

From Coq Require Import Arith List Lia.
Import ListNotations.

Section Machine.
Variables letter state : Type.
Variable step : state -> letter -> state.
Definition after (q : state) (l : list letter) : state := fold_left step l q.

(* A machine whose moves do not depend on another one, and one whose moves do, are one machine of pairs. *)
Variable other : Type.
Variable step_beside : state -> letter -> other -> other.   (* of the other one; it sees where the first one comes to *)
Definition joined (x : state * other) (a : letter) : state * other :=
  let q := step (fst x) a in (q, step_beside q a (snd x)).

(* Lemma of states together: what a word makes of the first is not changed by what joins it. *)
Theorem joined_runs q p l : fst (fold_left joined l (q, p)) = after q l.
Proof. unfold after. revert q p. induction l as [|a l IH]; intros q p; [reflexivity|]. simpl. apply IH. Qed.

(* A moment is a state and the letter that led there. Every moment of a word is among those that are numbered, if the
   start is and each letter leads from those that are to others. *)
Theorem moments (numbered : state -> Prop) start : numbered start ->
  (forall q a, numbered q -> numbered (step q a)) -> forall l, numbered (after start l).
Proof.
  intros B C l. revert start B. unfold after. induction l as [|a l IH]; intros start B; [exact B|]. simpl. apply IH.
    now apply C.
Qed.

(* Two states are one where what is read of them is equal for every letter, and each letter leads them to states that
  are
   one: then no word tells them apart. `merged` gives the number of the state that both become. *)
Variables (few reading : Type) (merged : state -> few) (out : state -> letter -> reading).
Hypothesis same_reading : forall q p a, merged q = merged p -> out q a = out p a.
Hypothesis same_step : forall q p a, merged q = merged p -> merged (step q a) = merged (step p a).

Theorem states_that_become_one q p l a : merged q = merged p -> out (after q l) a = out (after p l) a.
Proof.
  revert q p. unfold after. induction l as [|b l IH]; intros q p E; simpl; [now apply same_reading|]. apply IH. now
    apply same_step.
Qed.

(* So a machine over the fewer states, with any state that becomes each of them, reads the same of every word. *)
Variable back : few -> state.
Hypothesis back_is_one : forall q, merged (back (merged q)) = merged q.
Definition few_step (f : few) (a : letter) : few := merged (step (back f) a).

Theorem fewer_states q l a : out (back (fold_left few_step l (merged q))) a = out (after q l) a.
Proof.
  assert (E : fold_left few_step l (merged q) = merged (after q l)).
  { unfold after. revert q. induction l as [|b l IH]; intros q; [reflexivity|]. simpl. rewrite <- IH. f_equal.
    unfold few_step. apply same_step, back_is_one. }
  rewrite E. apply same_reading, back_is_one.
Qed.

(* Lemma of moved states: machines that are equal, state by state, and moved by equal flags, are in the same state at
  every
   position. `like` gives the state of the other that is equal. *)
Theorem equal_machines (other_step : other -> letter -> other) (like : state -> other) q l :
  (forall p a, like (step p a) = other_step (like p) a) -> like (after q l) = fold_left other_step l (like q).
Proof.
  intros H. revert q. unfold after. induction l as [|a l IH]; intros q; [reflexivity|]. simpl. rewrite IH. now rewrite
    H.
Qed.

(* The states that are reached from the first one are among those that are gone through, if these are closed. *)
Theorem reached_states (found : state -> Prop) q : found q -> (forall p a, found p -> found (step p a)) ->
  forall l, found (after q l).
Proof. apply moments. Qed.
End Machine.

(* What stood k positions back is a state of k places, with marks for the start: the newest last. *)
Section Places.
Variable letter : Type.
Definition shifted (places : list (option letter)) (a : letter) : list (option letter) := tl places ++ [Some a].

(* Lemma of states together: after a word the places are its last letters, behind marks where it was shorter. *)
Theorem places_back k l : (0 < k)%nat -> fold_left shifted l (repeat None k) = skipn (length l) (repeat None k ++ map
  Some l).
Proof.
  intros K. assert (W : repeat (@None letter) k <> []) by (destruct k; [lia|discriminate]). revert W.
  generalize (repeat (@None letter) k) as w. clear K. induction l as [|a l IH]; intros w W; [simpl; now rewrite
    app_nil_r|].
  simpl. destruct w as [|x w]; [easy|]. unfold shifted at 2. simpl tl. rewrite IH; [|now destruct w].
  simpl. now rewrite <- app_assoc.
Qed.
End Places.
