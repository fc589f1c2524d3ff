(* Scores under weights that are off, and rounded in any order; and that no special token leads. *)

From Coq Require Import Arith ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Section Rounded.
Variables u eta top : R.   (* relative and absolute error of one operation, and where the format ends *)
Hypothesis u_range : 0 <= u < 1.
Hypothesis eta_pos : 0 <= eta.

(* A rounding, up to where the format ends; what underflows is flushed, of a product or of a sum. *)
Definition rounds (r : R -> R) : Prop := forall x, Rabs x <= top -> Rabs (r x - x) <= u * Rabs x + eta.

Definition sizes (l : list R) : R := sum (map Rabs l).

Lemma sizes_app l m : sizes (l ++ m) = sizes l + sizes m.
Proof. unfold sizes. now rewrite map_app, sum_app. Qed.

Lemma sizes_pos l : 0 <= sizes l.
Proof. unfold sizes. induction l as [|x l IH]; simpl; [lra|]. pose proof (Rabs_pos x). lra. Qed.

Lemma sum_within_sizes l : Rabs (sum l) <= sizes l.
Proof.
  unfold sizes. induction l as [|x l IH]; simpl; [rewrite Rabs_R0; lra|]. apply Rle_trans with (1 := Rabs_triang _ _).
    lra.
Qed.

Definition grown (n : nat) : R := (1 + u) ^ n.
Definition off (n : nat) (s : R) : R := (grown n - 1) * s + grown n * (INR (2 * n) - 1) * eta.

Lemma grown_least n : 1 <= grown n.
Proof. apply pow_R1_Rle. lra. Qed.

Lemma grown_more n m : (n <= m)%nat -> grown n <= grown m.
Proof. intros H. apply Rle_pow; [lra|exact H]. Qed.

Lemma grown_next n : grown (S n) = (1 + u) * grown n.
Proof. reflexivity. Qed.

(* γ_n = nu/(1 − nu) bounds what n roundings make of 1. *)
Lemma gamma n : INR n * u < 1 -> grown n - 1 <= INR n * u / (1 - INR n * u).
Proof.
  intros H. assert (B : 1 - INR n * u <= (1 - u) ^ n).
  { clear H. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. simpl.
    assert (0 <= INR n * u) by (apply Rmult_le_pos; [apply pos_INR|lra]).
    assert ((1 - u) * (1 - INR n * u) <= (1 - u) * (1 - u) ^ n) by (apply Rmult_le_compat_l; lra). nra. }
  assert (P : grown n * (1 - u) ^ n <= 1).
  { unfold grown. rewrite <- Rpow_mult_distr. apply Rle_trans with (1 ^ n); [apply pow_incr; nra|rewrite pow1; lra]. }
  assert (Q : grown n * (1 - INR n * u) <= 1).
  { apply Rle_trans with (2 := P). apply Rmult_le_compat_l; [pose proof (grown_least n); lra|exact B]. }
  apply Rmult_le_reg_r with (1 - INR n * u); [lra|].
  replace (INR n * u / (1 - INR n * u) * (1 - INR n * u)) with (INR n * u) by (field; lra). lra.
Qed.

Lemma terms_at_least_one t : (1 <= length (terms t))%nat.
Proof. induction t; simpl; rewrite ?app_length; lia. Qed.

Lemma off_more n m s : (1 <= n <= m)%nat -> 0 <= s -> off n s <= off m s.
Proof.
  intros [H1 H] S. unfold off. pose proof (grown_more n m H) as G. pose proof (grown_least n).
  assert (I : INR (2 * n) <= INR (2 * m)) by (apply le_INR; lia).
  assert (J : 1 <= INR (2 * n)) by (change 1 with (INR 1); apply le_INR; lia).
  apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|]. apply Rmult_le_compat_r; [exact eta_pos|].
  apply Rmult_le_compat; lra.
Qed.

(* One more rounding of two sums of n and m terms. *)
Lemma one_more r n m s t x y a b : rounds r -> (1 <= n)%nat -> (1 <= m)%nat -> 0 <= s -> 0 <= t ->
  Rabs x <= s -> Rabs y <= t -> Rabs (a - x) <= off n s -> Rabs (b - y) <= off m t ->
  s + t + off (n + m) (s + t) <= top -> Rabs (r (a + b) - (x + y)) <= off (n + m) (s + t).
Proof.
  intros K N M Ps Pt X Y A B Top.
  assert (C : off n s + off m t <= off (n + m - 1) (s + t) + grown (n + m - 1) * eta).
  { unfold off. set (k := (n + m - 1)%nat).
    assert (Gn : grown n <= grown k) by (apply grown_more; unfold k; lia).
    assert (Gm : grown m <= grown k) by (apply grown_more; unfold k; lia).
    pose proof (grown_least n). pose proof (grown_least m).
    assert (In : 1 <= INR (2 * n)) by (change 1 with (INR 1); apply le_INR; lia).
    assert (Im : 1 <= INR (2 * m)) by (change 1 with (INR 1); apply le_INR; lia).
    assert (Ik : INR (2 * k) = INR (2 * n) + INR (2 * m) - 2).
    { unfold k. rewrite <- plus_INR. change 2 with (INR 2) at 1. rewrite <- minus_INR by lia. f_equal. lia. }
    assert ((grown n - 1) * s <= (grown k - 1) * s) by (apply Rmult_le_compat_r; lra).
    assert ((grown m - 1) * t <= (grown k - 1) * t) by (apply Rmult_le_compat_r; lra).
    assert (grown n * (INR (2 * n) - 1) * eta <= grown k * (INR (2 * n) - 1) * eta).
    { apply Rmult_le_compat_r; [exact eta_pos|]. apply Rmult_le_compat_r; lra. }
    assert (grown m * (INR (2 * m) - 1) * eta <= grown k * (INR (2 * m) - 1) * eta).
    { apply Rmult_le_compat_r; [exact eta_pos|]. apply Rmult_le_compat_r; lra. }
    rewrite Ik. lra. }
  set (k := (n + m - 1)%nat) in *. assert (E : (n + m)%nat = S k) by (unfold k; lia). rewrite E in *.
  assert (D : Rabs (a + b - (x + y)) <= off n s + off m t).
  { replace (a + b - (x + y)) with ((a - x) + (b - y)) by ring. apply Rle_trans with (1 := Rabs_triang _ _). lra. }
  assert (Z : Rabs (a + b) <= s + t + (off k (s + t) + grown k * eta)).
  { replace (a + b) with ((x + y) + (a + b - (x + y))) by ring. apply Rle_trans with (1 := Rabs_triang _ _).
    pose proof (Rabs_triang x y). lra. }
  pose proof (grown_least k). assert (0 <= grown k * eta) by (apply Rmult_le_pos; lra).
  assert (Next : off (S k) (s + t) = u * (s + t) + (1 + u) * (off k (s + t) + 2 * grown k * eta)).
  { unfold off. rewrite grown_next. replace (INR (2 * S k)) with (INR (2 * k) + 2); [ring|].
    rewrite !mult_INR, (S_INR k). simpl. ring. }
  assert (W : 0 <= off k (s + t) + grown k * eta).
  { pose proof (Rabs_pos (a + b - (x + y))). lra. }
  assert (0 <= u * (grown k * eta)) by (apply Rmult_le_pos; lra).
  assert (eta <= grown k * eta) by (rewrite <- (Rmult_1_l eta) at 1; apply Rmult_le_compat_r; lra).
  assert (0 <= u * (s + t)) by (apply Rmult_le_pos; lra).
  assert (0 <= u * (off k (s + t) + 2 * grown k * eta)) by (apply Rmult_le_pos; lra).
  specialize (K (a + b) ltac:(lra)).
  assert (u * Rabs (a + b) <= u * (s + t + (off k (s + t) + grown k * eta))) by (apply Rmult_le_compat_l; lra).
  replace (r (a + b) - (x + y)) with ((r (a + b) - (a + b)) + (a + b - (x + y))) by ring.
  apply Rle_trans with (1 := Rabs_triang _ _). lra.
Qed.

(* Lemma of a perturbed head: a sum of n terms, rounded in any order, is off by no more than γ_n of its sizes, and
  what is
   flushed; if no number on the way can be beyond the format. *)
Theorem sums_rounded t x : computed rounds t x -> sizes (terms t) + off (length (terms t)) (sizes (terms t)) <= top ->
  Rabs (x - sum (terms t)) <= off (length (terms t)) (sizes (terms t)).
Proof.
  induction 1 as [r w v K|r s t x y K _ IHs _ IHt|r w v t y K _ IH]; intros T.
  - simpl in *. unfold sizes in *. simpl in *. rewrite !Rplus_0_r in *. unfold off in *. simpl in *.
    pose proof (Rabs_pos (w * v)). specialize (K (w * v)). unfold grown in *. simpl in *.
    assert (0 <= u * Rabs (w * v)) by (apply Rmult_le_pos; lra). assert (0 <= u * eta) by (apply Rmult_le_pos; lra).
    specialize (K ltac:(lra)). lra.
  - cbn [terms] in *. rewrite app_length, sizes_app, sum_app in *.
    pose proof (terms_at_least_one s) as Ns. pose proof (terms_at_least_one t) as Nt.
    pose proof (sizes_pos (terms s)) as Ps. pose proof (sizes_pos (terms t)) as Pt.
    assert (Os : off (length (terms s)) (sizes (terms s)) <= off (length (terms s) + length (terms t)) (sizes (terms
      s) + sizes (terms t))).
    { apply Rle_trans with (off (length (terms s) + length (terms t)) (sizes (terms s))); [apply off_more; lia || lra|].
      unfold off. apply Rplus_le_compat_r. apply Rmult_le_compat_l; [pose proof (grown_least (length (terms s) +
        length (terms t))); lra|lra]. }
    assert (Ot : off (length (terms t)) (sizes (terms t)) <= off (length (terms s) + length (terms t)) (sizes (terms
      s) + sizes (terms t))).
    { apply Rle_trans with (off (length (terms s) + length (terms t)) (sizes (terms t))); [apply off_more; lia || lra|].
      unfold off. apply Rplus_le_compat_r. apply Rmult_le_compat_l; [pose proof (grown_least (length (terms s) +
        length (terms t))); lra|lra]. }
    apply one_more; try assumption; try apply sum_within_sizes; [apply IHs|apply IHt]; lra.
  - cbn [terms] in *. change (w * v :: terms t) with ([w * v] ++ terms t) in *. rewrite app_length, sizes_app, sum_app
    in *.
    pose proof (terms_at_least_one t) as Nt. pose proof (sizes_pos (terms t)) as Pt. pose proof (sizes_pos [w * v]) as
      Pw.
    replace (sum [w * v]) with (w * v) by (simpl; ring).
    assert (Ot : off (length (terms t)) (sizes (terms t)) <= off (length [w * v] + length (terms t)) (sizes [w * v] +
      sizes (terms t))).
    { apply Rle_trans with (off (length [w * v] + length (terms t)) (sizes (terms t))); [apply off_more; simpl; lia ||
      lra|].
      unfold off. apply Rplus_le_compat_r. apply Rmult_le_compat_l; [pose proof (grown_least (length [w * v] + length
        (terms t))); lra|lra]. }
    apply one_more; try assumption; try apply sum_within_sizes.
    + simpl. lia.
    + unfold sizes. simpl. lra.
    + rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0. unfold off. simpl length. simpl grown.
      pose proof (grown_least 1). assert (0 <= (grown 1 - 1) * sizes [w * v]) by (apply Rmult_le_pos; lra).
      assert (0 <= grown 1 * (INR (2 * 1) - 1) * eta) by (simpl INR; apply Rmult_le_pos; [apply Rmult_le_pos;
        lra|lra]). lra.
    + apply IH. lra.
Qed.
End Rounded.

(* A score under weights w' of lanes x, where the exact one is under w: off by e = Σ|w' − w|·|x| and what is rounded. *)
Theorem perturbed_score (l : list (R * R * R)) computed_score e :
  let exact_score := sum (map (fun p => fst (fst p) * snd p) l) in
  let perturbed := sum (map (fun p => snd (fst p) * snd p) l) in
  Rabs (computed_score - perturbed) <= e ->
  Rabs (computed_score - exact_score) <= sum (map (fun p => Rabs (snd (fst p) - fst (fst p)) * Rabs (snd p)) l) + e.
Proof.
  intros exact_score perturbed H.
  assert (D : Rabs (perturbed - exact_score) <= sum (map (fun p => Rabs (snd (fst p) - fst (fst p)) * Rabs (snd p)) l)).
  { unfold perturbed, exact_score. clear. induction l as [|[[w v] x] l IH]; simpl; [rewrite Rminus_0_r, Rabs_R0; lra|].
    rewrite <- Rabs_mult.
    replace (v * x + sum (map (fun p => snd (fst p) * snd p) l) - (w * x + sum (map (fun p => fst (fst p) * snd p) l)))
      with ((v - w) * x + (sum (map (fun p => snd (fst p) * snd p) l) - sum (map (fun p => fst (fst p) * snd p) l)))
        by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). lra. }
  replace (computed_score - exact_score) with ((computed_score - perturbed) + (perturbed - exact_score)) by ring.
  apply Rle_trans with (1 := Rabs_triang _ _). lra.
Qed.

(* So the right letter leads by what is left of its lead. *)
Theorem perturbed_lead exact_v exact_u v u e lead : Rabs (v - exact_v) <= e -> Rabs (u - exact_u) <= e ->
  lead <= exact_v - exact_u -> lead - 2 * e <= v - u.
Proof. intros V U L. apply Rabs_le_inv in V. apply Rabs_le_inv in U. lra. Qed.

(* Lemmas of special tokens and of a perturbed head: no special token scores highest, where one letter stays above what
   each of them can reach, all errors counted. *)
Theorem special_tokens (token : Type) (letter special : token -> Prop) (score exact least most error : token -> R) :
  (forall a, least a <= exact a <= most a) -> (forall a, Rabs (score a - exact a) <= error a) ->
  (exists a, letter a /\ forall s, special s -> most s + error s < least a - error a) ->
  forall s, special s -> exists a, letter a /\ score s < score a.
Proof.
  intros B E (a & La & H) s Hs. exists a. split; [exact La|]. specialize (H s Hs).
  pose proof (B a). pose proof (B s). pose proof (Rabs_le_inv _ _ (E a)). pose proof (Rabs_le_inv _ _ (E s)). lra.
Qed.
