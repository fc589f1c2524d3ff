(* Sums of lattice numbers, in any order and any bracketing, with or without fused multiply-adds. *)

From Coq Require Import ZArith Reals List Permutation Lra Lia.
From Flocq Require Import Core BinarySingleNaN.
From Lemmas Require Import Formats.
Import ListNotations.
Open Scope R_scope.

Definition sum : list R -> R := fold_right Rplus 0.
Definition above (l : list R) : R := sum (map (fun x => Rmax x 0) l).      (* of the positive terms *)
Definition under (l : list R) : R := sum (map (fun x => Rmax (- x) 0) l).  (* of the negative ones, as a size *)

Lemma sum_app l m : sum (l ++ m) = sum l + sum m.
Proof. induction l as [|x l IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma sum_permuted l m : Permutation l m -> sum l = sum m.
Proof. induction 1; simpl; lra. Qed.

Lemma above_app l m : above (l ++ m) = above l + above m.
Proof. unfold above. now rewrite map_app, sum_app. Qed.

Lemma under_app l m : under (l ++ m) = under l + under m.
Proof. unfold under. now rewrite map_app, sum_app. Qed.

Lemma above_permuted l m : Permutation l m -> above l = above m.
Proof. intros H. apply sum_permuted, Permutation_map, H. Qed.

Lemma under_permuted l m : Permutation l m -> under l = under m.
Proof. intros H. apply sum_permuted, Permutation_map, H. Qed.

Lemma above_pos l : 0 <= above l.
Proof. induction l as [|x l IH]; cbn; [lra|fold (above l)]. pose proof (Rmax_r x 0). lra. Qed.

Lemma under_pos l : 0 <= under l.
Proof. induction l as [|x l IH]; cbn; [lra|fold (under l)]. pose proof (Rmax_r (- x) 0). lra. Qed.

Lemma sum_between l : - under l <= sum l <= above l.
Proof.
  induction l as [|x l IH]; cbn; [lra|]. fold (sum l) (above l) (under l).
  pose proof (Rmax_l x 0). pose proof (Rmax_l (- x) 0). lra.
Qed.

Lemma sum_multiple e l : (forall x, In x l -> multiple e x) -> multiple e (sum l).
Proof.
  induction l as [|x l IH]; intros H; [apply multiple_0|].
  apply multiple_plus; [apply H; now left|apply IH; intros y Hy; apply H; now right].
Qed.

(* An order in which weights times values are added: a sequential scan, a tree, a chunked or fused kernel. *)
Inductive order :=
  | Term (w v : R)
  | Add (s t : order)
  | Fused (w v : R) (t : order).   (* w·v + t, rounded once *)

Fixpoint terms (t : order) : list R :=
  match t with
  | Term w v => [w * v]
  | Add s t => terms s ++ terms t
  | Fused w v t => w * v :: terms t
  end.

(* x is what t can be computed as, where each step is rounded in a way of its own: one of `ways`. *)
Inductive computed (ways : (R -> R) -> Prop) : order -> R -> Prop :=
  | computed_term r w v : ways r -> computed ways (Term w v) (r (w * v))
  | computed_add r s t x y : ways r -> computed ways s x -> computed ways t y -> computed ways (Add s t) (r (x + y))
  | computed_fused r w v t y : ways r -> computed ways t y -> computed ways (Fused w v t) (r (w * v + y)).

(* The premise of the lemma of sums: all terms are multiples of 2^e, and neither the positive nor the negative ones add
   up to more than 2^p of these, or beyond the largest number. *)
Definition within (F : format) (e : Z) (l : list R) : Prop :=
  (least F <= e)%Z /\ (forall x, In x l -> multiple e x) /\
  Rmax (above l) (under l) <= two (bits F + e) /\ Rmax (above l) (under l) <= largest F.

Lemma within_app F e l m : within F e (l ++ m) -> within F e l /\ within F e m.
Proof.
  intros (He & Hm & Hb & Ht). rewrite above_app, under_app in *.
  pose proof (above_pos l). pose proof (above_pos m). pose proof (under_pos l). pose proof (under_pos m).
  assert (Hl : Rmax (above l) (under l) <= Rmax (above l + above m) (under l + under m)) by
    (apply Rmax_lub; [eapply Rle_trans; [|apply Rmax_l]|eapply Rle_trans; [|apply Rmax_r]]; lra).
  assert (Hr : Rmax (above m) (under m) <= Rmax (above l + above m) (under l + under m)) by
    (apply Rmax_lub; [eapply Rle_trans; [|apply Rmax_l]|eapply Rle_trans; [|apply Rmax_r]]; lra).
  split; (split; [exact He|]); (split; [intros x Hx; apply Hm, in_or_app; auto|]); split; lra.
Qed.

Lemma within_holds F e l : within F e l -> holds F (sum l).
Proof.
  intros (He & Hm & Hb & Ht). exists e. split; [exact He|]. split; [now apply sum_multiple|].
  pose proof (sum_between l). pose proof (Rmax_l (above l) (under l)). pose proof (Rmax_r (above l) (under l)).
  split; apply Rabs_le; lra.
Qed.

(* Lemma of sums: every order gives the exact sum, and so does every order of the same terms. *)
Theorem sums F e t x : within F e (terms t) -> computed (keeps F) t x -> x = sum (terms t).
Proof.
  intros H C. induction C as [r w v K|r s t x y K _ IHs _ IHt|r w v t y K _ IH]; simpl in *.
  - rewrite K; [lra|]. apply within_holds in H. simpl in H. now rewrite Rplus_0_r in H.
  - destruct (within_app _ _ _ _ H) as [Hs Ht]. rewrite IHs, IHt, sum_app by assumption. apply K.
    rewrite <- sum_app. now apply within_holds with e.
  - destruct (within_app F e [w * v] (terms t) H) as [_ Ht]. rewrite IH by assumption. apply K.
    apply (within_holds F e (w * v :: terms t) H).
Qed.

Corollary sums_in_any_order F e l t x :
  within F e l -> Permutation (terms t) l -> computed (keeps F) t x -> x = sum l.
Proof.
  intros (He & Hm & Hb) P C. rewrite <- (sum_permuted _ _ P). apply (sums F e t x); [|exact C].
  split; [exact He|]. split; [|now rewrite (above_permuted _ _ P), (under_permuted _ _ P)].
  intros y Hy. apply Hm. now apply (Permutation_in y P).
Qed.

(* Products: of a multiple of 2^e by one of 2^f. *)
Theorem products F e f a b r :
  keeps F r -> multiple e a -> multiple f b -> (least F <= e + f)%Z ->
  Rabs a * Rabs b <= two (bits F + (e + f)) -> Rabs a * Rabs b <= largest F -> r (a * b) = a * b.
Proof.
  intros K Ha Hb He Hp Hl. apply K. exists (e + f)%Z. rewrite Rabs_mult.
  split; [exact He|]. split; [now apply multiple_mult|]. now split.
Qed.

(* The lemma of sums for IEEE numbers themselves, infinities and NaN included: no step of any order leaves the finite
   numbers. *)
Section IEEE.
Context (p emax : Z) (positive : Prec_gt_0 p) (room : Prec_lt_emax p emax) (mode : BinarySingleNaN.mode).
Notation float := (binary_float p emax).

Inductive ieee_order :=
  | ITerm (w v : float)
  | IAdd (s t : ieee_order)
  | IFused (w v : float) (t : ieee_order).

Fixpoint run (t : ieee_order) : float :=
  match t with
  | ITerm w v => Bmult mode w v
  | IAdd s t => Bplus mode (run s) (run t)
  | IFused w v t => Bfma mode w v (run t)
  end.

Fixpoint exact (t : ieee_order) : order :=
  match t with
  | ITerm w v => Term (B2R w) (B2R v)
  | IAdd s t => Add (exact s) (exact t)
  | IFused w v t => Fused (B2R w) (B2R v) (exact t)
  end.

Fixpoint finite_inputs (t : ieee_order) : Prop :=
  match t with
  | ITerm w v => is_finite w = true /\ is_finite v = true
  | IAdd s t => finite_inputs s /\ finite_inputs t
  | IFused w v t => is_finite w = true /\ is_finite v = true /\ finite_inputs t
  end.

Let fexp := SpecFloat.fexp p emax.  (* of Flocq: FLT_exp (3 - emax - p) p *)

Lemma no_overflow F x : bits F = p -> (3 - emax - p <= least F)%Z -> largest F < two emax -> holds F x ->
  round radix2 fexp (round_mode mode) x = x /\ Rlt_bool (Rabs x) (two emax) = true.
Proof.
  intros Hp He Hl H. split.
  - change fexp with (FLT_exp (3 - emax - p) p). destruct F as [q l m]; simpl in *; subst q.
    apply (ieee_keeps (Format p l m) positive); simpl; try assumption. apply valid_rnd_round_mode.
  - destruct H as (_ & _ & _ & _ & H). apply Rlt_bool_true. lra.
Qed.

Theorem sums_ieee F e t :
  bits F = p -> (3 - emax - p <= least F)%Z -> largest F < two emax -> finite_inputs t ->
  within F e (terms (exact t)) -> is_finite (run t) = true /\ B2R (run t) = sum (terms (exact t)).
Proof.
  intros Hp He Hl. induction t as [w v|s IHs t IHt|w v t IH]; simpl; intros Hf H.
  - destruct Hf as [Fw Fv]. apply within_holds in H. simpl in H. rewrite Rplus_0_r in *.
    destruct (no_overflow F _ Hp He Hl H) as [R B].
    pose proof (Bmult_correct p emax _ _ mode w v) as C. fold fexp in C. rewrite R, B in C.
    destruct C as (C & D & _). rewrite D, Fw, Fv. now split.
  - destruct Hf as [Fs Ft]. pose proof (within_holds F e _ H) as HH. rewrite sum_app in *.
    destruct (within_app _ _ _ _ H) as [Hs Ht].
    destruct (IHs Fs Hs) as [Fs' Es], (IHt Ft Ht) as [Ft' Et].
    destruct (no_overflow F _ Hp He Hl HH) as [R B]. rewrite <- Es, <- Et in *.
    pose proof (Bplus_correct p emax _ _ mode _ _ Fs' Ft') as C. fold fexp in C. rewrite R, B in C. tauto.
  - destruct Hf as (Fw & Fv & Ft). pose proof (within_holds F e _ H) as HH. simpl in HH |- *.
    destruct (within_app F e [B2R w * B2R v] (terms (exact t)) H) as [_ Ht].
    destruct (IH Ft Ht) as [Ft' Et]. destruct (no_overflow F _ Hp He Hl HH) as [R B]. fold (sum (terms (exact t))) in *.
    rewrite <- Et in *.
    pose proof (Bfma_correct p emax _ _ mode _ _ _ Fw Fv Ft') as C. cbv zeta in C. fold fexp in C.
    rewrite R, B in C. tauto.
Qed.
End IEEE.
