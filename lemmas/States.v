(* States h ← a·h + b whose factors a are all 0 or 1, scanned in any bracketing. *)

From Coq Require Import ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats Sums.
Import ListNotations.
Open Scope R_scope.

(* A step of a state: its factor a and what it adds. *)
Definition step := (R * R)%type.

(* What the recurrence holds after some steps, exactly, from 0 on; and the product of their factors. *)
Definition since (l : list step) : R := fold_left (fun h s => fst s * h + snd s) l 0.
Definition factor (l : list step) : R := fold_right (fun s a => fst s * a) 1 l.

(* A parallel scan: two neighbouring parts (a, b), then (a', b') are the step (a'·a, a'·b + b'). A sequential scan
   is one of them. *)
Inductive scan :=
  | One (s : step)
  | Then (first second : scan).

Fixpoint steps (t : scan) : list step :=
  match t with
  | One s => [s]
  | Then s t => steps s ++ steps t
  end.

Inductive scanned (F : format) : scan -> step -> Prop :=
  | scanned_one s : scanned F (One s) s
  | scanned_then r q u s t a b a' b' : keeps F r -> keeps F q -> keeps F u ->
      scanned F s (a, b) -> scanned F t (a', b') ->
      scanned F (Then s t) (r (a' * a), q (u (a' * b) + b'))
  | scanned_fused r q s t a b a' b' : keeps F r -> keeps F q ->
      scanned F s (a, b) -> scanned F t (a', b') ->
      scanned F (Then s t) (r (a' * a), q (a' * b + b')).

Definition switch (s : step) : Prop := fst s = 0 \/ fst s = 1.

Lemma since_from l h : fold_left (fun h s => fst s * h + snd s) l h = factor l * h + since l.
Proof.
  revert h. unfold since. induction l as [|[a b] l IH]; intros h; simpl; [ring|].
  rewrite IH, (IH (a * 0 + b)). ring.
Qed.

Lemma since_app l m : since (l ++ m) = factor m * since l + since m.
Proof. unfold since at 1. rewrite fold_left_app. apply since_from. Qed.

Lemma factor_app l m : factor (l ++ m) = factor m * factor l.
Proof. induction l as [|s l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma factor_switch l : (forall s, In s l -> switch s) -> factor l = 0 \/ factor l = 1.
Proof.
  induction l as [|s l IH]; intros H; simpl; [now right|].
  destruct (H s (or_introl eq_refl)) as [->| ->]; [left; ring|].
  destruct IH as [-> | ->]; [intros u Hu; apply H; now right|left|right]; ring.
Qed.

(* Every run of neighbouring steps adds up to what the format holds. *)
Definition segments_hold (F : format) (l : list step) : Prop := forall x y z, l = x ++ y ++ z -> holds F (since y).

Lemma segments_left F l m : segments_hold F (l ++ m) -> segments_hold F l.
Proof. intros H x y z ->. apply (H x y (z ++ m)). now rewrite <- !app_assoc. Qed.

Lemma segments_right F l m : segments_hold F (l ++ m) -> segments_hold F m.
Proof. intros H x y z ->. apply (H (l ++ x) y z). now rewrite <- !app_assoc. Qed.

(* Lemma of running sums: and of every other state whose factors are 0 or 1. Each bracketing of a scan gives exactly
   what the recurrence holds. *)
Theorem scans F t a b : (forall s, In s (steps t) -> switch s) -> segments_hold F (steps t) -> holds F 1 ->
  scanned F t (a, b) -> a = factor (steps t) /\ b = since (steps t).
Proof.
  intros S G H1 C. remember (a, b) as s eqn:E. revert a b E S G.
  induction C as [[a' b']|r q u s t a1 b1 a2 b2 Kr Kq Ku _ IHs _ IHt|r q s t a1 b1 a2 b2 Kr Kq _ IHs _ IHt];
    intros a b E S G; inversion E; subst; clear E.
  - unfold since; simpl. split; ring.
  - simpl in *. assert (H0 : holds F 0) by (apply (G [] [] (steps s ++ steps t)); reflexivity).
    destruct (IHs a1 b1 eq_refl) as [-> ->]; [intros x Hx; apply S, in_or_app; auto|now apply segments_left in G|].
    destruct (IHt a2 b2 eq_refl) as [-> ->]; [intros x Hx; apply S, in_or_app; auto|now apply segments_right in G|].
    pose proof (G [] (steps s ++ steps t) []) as Hst. rewrite app_nil_r in Hst. specialize (Hst eq_refl).
    pose proof (G [] (steps s) (steps t) eq_refl) as Hs. pose proof (G (steps s) (steps t) []) as Ht.
    rewrite app_nil_r in Ht. specialize (Ht eq_refl). rewrite factor_app, since_app in *.
    destruct (factor_switch (steps t)) as [E|E]; [intros x Hx; apply S, in_or_app; auto|rewrite E in *..].
    + rewrite !Rmult_0_l in *. rewrite (Kr 0 H0), (Ku 0 H0). split; [reflexivity|]. now apply Kq.
    + rewrite !Rmult_1_l in *. rewrite (Ku _ Hs), (Kq _ Hst). split; [|reflexivity].
      destruct (factor_switch (steps s)) as [E'|E']; [intros x Hx; apply S, in_or_app; auto|rewrite E'; now apply Kr..].
  - simpl in *. assert (H0 : holds F 0) by (apply (G [] [] (steps s ++ steps t)); reflexivity).
    destruct (IHs a1 b1 eq_refl) as [-> ->]; [intros x Hx; apply S, in_or_app; auto|now apply segments_left in G|].
    destruct (IHt a2 b2 eq_refl) as [-> ->]; [intros x Hx; apply S, in_or_app; auto|now apply segments_right in G|].
    pose proof (G [] (steps s ++ steps t) []) as Hst. rewrite app_nil_r in Hst. specialize (Hst eq_refl).
    rewrite since_app in *. rewrite factor_app. rewrite (Kq _ Hst). split; [|reflexivity].
    apply Kr. destruct (factor_switch (steps t)) as [-> | ->]; [intros x Hx; apply S, in_or_app; auto| |];
    destruct (factor_switch (steps s)) as [-> | ->]; try (intros x Hx; apply S, in_or_app; auto);
    rewrite ?Rmult_0_l, ?Rmult_1_l; assumption.
Qed.

(* All factors 1: the state is the running sum, and `within` its premise. *)
Theorem kept_is_running_sum l : (forall s, In s l -> fst s = 1) -> since l = sum (map snd l).
Proof.
  induction l as [|[a b] l IH] using rev_ind; intros H; [reflexivity|].
  rewrite since_app, map_app, sum_app, IH by (intros s Hs; apply H, in_or_app; auto).
  assert (E : a = 1) by (apply (H (a, b)), in_or_app; right; now left). rewrite E. unfold since, factor; simpl. ring.
Qed.

Theorem running_sums_hold F e l : (forall s, In s l -> fst s = 1) -> within F e (map snd l) -> segments_hold F l.
Proof.
  intros H W x y z ->. rewrite kept_is_running_sum.
  - rewrite !map_app in W. apply within_app in W. destruct W as [_ W]. apply within_app in W.
    now apply within_holds with e.
  - intros s Hs. apply H, in_or_app. right. apply in_or_app. now left.
Qed.

Lemma since_last l s : since (l ++ [s]) = fst s * since l + snd s.
Proof. rewrite since_app. unfold since at 2, factor; simpl. ring. Qed.

(* Lemma of latches: steps either leave the state (1, 0) or replace it (0, b). It is 0 or what one of them wrote. *)
Definition leaves_or_replaces (s : step) : Prop := s = (1, 0) \/ fst s = 0.

Theorem erased_is_last_write l m b : (forall s, In s m -> s = (1, 0)) -> since (l ++ (0, b) :: m) = b.
Proof.
  intros H. induction m as [|s m IH] using rev_ind.
  - rewrite since_last. simpl. ring.
  - replace (l ++ (0, b) :: m ++ [s]) with ((l ++ (0, b) :: m) ++ [s]) by now rewrite <- app_assoc.
    rewrite since_last, IH by (intros u Hu; apply H, in_or_app; auto).
    rewrite (H s) by (apply in_or_app; right; now left). simpl. ring.
Qed.

Theorem latch_values l : (forall s, In s l -> leaves_or_replaces s) ->
  since l = 0 \/ exists s, In s l /\ fst s = 0 /\ since l = snd s.
Proof.
  induction l as [|[a b] l IH] using rev_ind; intros H; [now left|]. rewrite since_last.
  destruct (H (a, b)) as [E|E]; [apply in_or_app; right; now left| |].
  - injection E as -> ->. simpl. destruct IH as [IH|(s & I & Z & IH)]; [intros s Hs; apply H, in_or_app; auto| |].
    + left. rewrite IH. ring.
    + right. exists s. split; [apply in_or_app; now left|]. split; [exact Z|]. rewrite IH. ring.
  - simpl in E. subst a. right. exists (0, b). split; [apply in_or_app; right; now left|]. simpl. split; [|ring]; reflexivity.
Qed.

Theorem latches_hold F l : holds F 0 -> (forall s, In s l -> leaves_or_replaces s /\ (fst s = 0 -> holds F (snd s))) ->
  segments_hold F l.
Proof.
  intros H0 H x y z ->. destruct (latch_values y) as [-> |(s & I & Z & ->)]; [|exact H0|].
  - intros s Hs. apply H, in_or_app. right. apply in_or_app. now left.
  - apply H; [|exact Z]. apply in_or_app. right. apply in_or_app. now left.
Qed.

(* Lemma of decay: factors 1 where something may be added, factors 0 where nothing is: the sum since the last reset. *)
Theorem counted_since_reset l m : (forall s, In s m -> fst s = 1) -> since (l ++ (0, 0) :: m) = sum (map snd m).
Proof.
  intros H. change ((0, 0) :: m) with ([(0, 0)] ++ m). rewrite !since_app, (kept_is_running_sum m H).
  unfold factor at 2, since at 2. simpl. ring.
Qed.

(* Lemma of counts since: a running sum, its latch under a flag, and the count since the flag last held, side by side. *)
Definition watch (s : R * R * R) (position : bool * R) : R * R * R :=
  let '(total, kept, count) := s in
  let '(flag, added) := position in
  (total + added, if flag then total + added else kept, if flag then 0 else count + added).

Theorem counts_since l : let '(total, kept, count) := fold_left watch l (0, 0, 0) in total - kept = count.
Proof.
  enough (H : forall s, fst (fst s) - snd (fst s) = snd s ->
    let '(total, kept, count) := fold_left watch l s in total - kept = count) by (apply (H (0, 0, 0)); simpl; ring).
  induction l as [|[[|] w] l IH]; intros [[t k] c] E; simpl in *; [exact E|apply IH; simpl; ring|apply IH; simpl; lra].
Qed.

(* Lemmas of latches of one flag and of memories: states are linear in what they store, where their factors are the same. *)
Theorem states_are_linear (l : list (R * (R * R))) x y :
  since (map (fun s => (fst s, x * fst (snd s) + y * snd (snd s))) l) =
  x * since (map (fun s => (fst s, fst (snd s))) l) + y * since (map (fun s => (fst s, snd (snd s))) l).
Proof.
  induction l as [|[a [b c]] l IH] using rev_ind; [unfold since; simpl; ring|].
  rewrite !map_app. simpl map. rewrite !since_last, IH. simpl. ring.
Qed.
