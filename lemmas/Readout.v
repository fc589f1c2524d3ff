(* Which letter scores highest, from bounds on what is read. *)

From Coq Require Import Arith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Sums Totals.
Import ListNotations.
Open Scope R_scope.

(* Σ over the lanes j < n. *)
Definition over (n : nat) (f : nat -> R) : R := upto f n.

Lemma over_ext n f g : (forall j, (j < n)%nat -> f j = g j) -> over n f = over n g.
Proof. unfold over. induction n as [|n IH]; intros H; simpl; [reflexivity|]. rewrite IH, H; auto. Qed.

Lemma over_plus n f g : over n (fun j => f j + g j) = over n f + over n g.
Proof. unfold over. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma over_minus n f g : over n (fun j => f j - g j) = over n f - over n g.
Proof. unfold over. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma over_scaled n c f : over n (fun j => c * f j) = c * over n f.
Proof. unfold over. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma over_le n f g : (forall j, (j < n)%nat -> f j <= g j) -> over n f <= over n g.
Proof.
  unfold over. induction n as [|n IH]; intros H; simpl; [lra|].
  assert (upto f n <= upto g n) by (apply IH; auto). pose proof (H n ltac:(lia)). lra.
Qed.

Lemma over_pos n f : (forall j, (j < n)%nat -> 0 <= f j) -> 0 <= over n f.
Proof.
  unfold over. induction n as [|n IH]; intros H; simpl; [lra|].
  assert (0 <= upto f n) by (apply IH; auto). pose proof (H n ltac:(lia)). lra.
Qed.

Lemma over_at_least n f k : (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> f k <= over n f.
Proof.
  induction n as [|n IH]; intros H K; [lia|]. change (over (S n) f) with (over n f + f n).
  pose proof (H n ltac:(lia)). destruct (Nat.eq_dec k n) as [->|D].
  - assert (0 <= over n f) by (apply over_pos; auto). lra.
  - assert (f k <= over n f) by (apply IH; auto; lia). lra.
Qed.

Section Readout.
Variable lanes : nat.
Variable word : Type.                   (* what can be stored *)
Variable code : word -> nat -> R.       (* its code, lane by lane *)
Variables z reach : nat -> R.           (* a centre of the codes, and how far they are from it *)
Hypothesis near : forall w j, (j < lanes)%nat -> Rabs (code w j - z j) <= reach j.
Variables head_v head_u : nat -> R.
Variables own_v own_u : R.

(* What is read: a times the code of the answer, and others. *)
Variables (a : R) (answer : word) (others : list (R * word)).
Definition weights : R := sum (map fst others).
Definition noise : R := sum (map (fun s => Rabs (fst s)) others).
Definition read (j : nat) : R := a * code answer j + sum (map (fun s => fst s * code (snd s) j) others).
Definition lead : R := own_v - own_u + over lanes (fun j => (head_v j - head_u j) * read j).

Lemma read_from_the_centre j :
  read j = a * (code answer j - z j) + (a + weights) * z j + sum (map (fun s => fst s * (code (snd s) j - z j)) others).
Proof.
  unfold read, weights. induction others as [|[w s] l IH]; simpl; [ring|].
  apply Rplus_eq_reg_l with (- (w * code s j)). ring_simplify in IH. ring_simplify. lra.
Qed.

Lemma noise_in_a_lane j : (j < lanes)%nat ->
  Rabs (sum (map (fun s => fst s * (code (snd s) j - z j)) others)) <= noise * reach j.
Proof.
  intros J. unfold noise. induction others as [|[w s] l IH]; simpl; [rewrite Rabs_R0; lra|].
  apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult.
  assert (Rabs w * Rabs (code s j - z j) <= Rabs w * reach j).
  { apply Rmult_le_compat_l; [apply Rabs_pos|now apply near]. }
  lra.
Qed.

Lemma reach_pos j : (j < lanes)%nat -> 0 <= reach j.
Proof. intros J. apply Rle_trans with (2 := near answer j J). apply Rabs_pos. Qed.

(* Lemma of readout: the lead of an answer over another letter, whatever else is read, if the sizes of its weights add
   up to omega at most. *)
Theorem readout omega : noise <= omega ->
  a * over lanes (fun j => (head_v j - head_u j) * (code answer j - z j)) +
  (a + weights) * over lanes (fun j => (head_v j - head_u j) * z j) + (own_v - own_u) -
  omega * over lanes (fun j => Rabs (head_v j - head_u j) * reach j) <= lead.
Proof.
  intros N. unfold lead. rewrite <- !over_scaled.
  enough (over lanes (fun j => a * ((head_v j - head_u j) * (code answer j - z j)) +
    (a + weights) * ((head_v j - head_u j) * z j) - omega * (Rabs (head_v j - head_u j) * reach j))
    <= over lanes (fun j => (head_v j - head_u j) * read j)) by (rewrite over_minus, over_plus in H; lra).
  apply over_le. intros j J. rewrite read_from_the_centre.
  pose proof (noise_in_a_lane j J) as B. pose proof (reach_pos j J) as P.
  set (e := sum _) in *. set (d := head_v j - head_u j).
  assert (- (Rabs d * (omega * reach j)) <= d * e).
  { assert (Rabs (d * e) <= Rabs d * (omega * reach j)).
    { rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|].
      apply Rle_trans with (1 := B). now apply Rmult_le_compat_r. }
    pose proof (Rle_abs (- (d * e))). rewrite Rabs_Ropp in *. lra. }
  lra.
Qed.

(* Its letters' heads are at the end of every lane on the side of their code: each lane where two differ adds as much. *)
Section Sides.
Variables (omega low margin : R) (top bottom : nat -> R).
Hypothesis heard : noise <= omega.
Hypothesis least : low <= a.
Hypothesis low_pos : 0 <= low.
Hypothesis margin_pos : 0 <= margin.
Hypothesis offsets : own_v - own_u + (a + weights) * over lanes (fun j => (head_v j - head_u j) * z j) = 0.
Hypothesis ends : forall j, (j < lanes)%nat -> bottom j <= head_u j <= top j.
Hypothesis side : forall j, (j < lanes)%nat -> head_v j = if Rlt_dec (z j) (code answer j) then top j else bottom j.
Hypothesis clear : forall j, (j < lanes)%nat -> head_u j = head_v j \/
  (head_u j = top j + bottom j - head_v j /\ margin <= (top j - bottom j) * (low * Rabs (code answer j - z j) - omega
    * reach j)).

Definition gain (j : nat) : R :=
  a * ((head_v j - head_u j) * (code answer j - z j)) - omega * (Rabs (head_v j - head_u j) * reach j).

Lemma gains : over lanes gain <= lead.
Proof.
  apply Rle_trans with (2 := readout omega heard).
  assert (E : a * over lanes (fun j => (head_v j - head_u j) * (code answer j - z j)) -
    omega * over lanes (fun j => Rabs (head_v j - head_u j) * reach j) = over lanes gain).
  { unfold gain. rewrite over_minus, !over_scaled. reflexivity. }
  lra.
Qed.

Lemma gain_where_they_differ j : (j < lanes)%nat -> head_u j <> head_v j -> margin <= gain j.
Proof.
  intros J NEj. destruct (clear j J) as [EQ|[EQ B]]; [contradiction|]. apply Rle_trans with (1 := B).
  pose proof (ends j J) as TB. pose proof (side j J) as V. unfold gain. pose proof (reach_pos j J).
  assert (A : (head_v j - head_u j) * (code answer j - z j) = (top j - bottom j) * Rabs (code answer j - z j) /\
    Rabs (head_v j - head_u j) = top j - bottom j).
  { destruct (Rlt_dec (z j) (code answer j)) as [S|S].
    - rewrite V in *. replace (top j - head_u j) with (top j - bottom j) by lra.
      rewrite !Rabs_pos_eq by lra. split; ring.
    - apply Rnot_lt_le in S. rewrite V in *. replace (bottom j - head_u j) with (- (top j - bottom j)) by lra.
      rewrite Rabs_Ropp, (Rabs_pos_eq (top j - bottom j)) by lra. rewrite Rabs_left1 by lra. split; ring. }
  destruct A as [-> ->].
  assert (low * ((top j - bottom j) * Rabs (code answer j - z j)) <= a * ((top j - bottom j) * Rabs (code answer j - z
    j))).
  { apply Rmult_le_compat_r; [|exact least]. apply Rmult_le_pos; [lra|apply Rabs_pos]. }
  lra.
Qed.

Lemma gain_pos j : (j < lanes)%nat -> 0 <= gain j.
Proof.
  intros J. destruct (Req_dec (head_u j) (head_v j)) as [EQ|NEj].
  - unfold gain. rewrite EQ. replace (head_v j - head_v j) with 0 by ring. rewrite Rabs_R0. lra.
  - apply Rle_trans with (1 := margin_pos). now apply gain_where_they_differ.
Qed.

Theorem readout_by_sides k : (k < lanes)%nat -> head_u k <> head_v k -> margin <= lead.
Proof.
  intros K NE. apply Rle_trans with (2 := gains). apply Rle_trans with (gain k); [now apply gain_where_they_differ|].
  apply over_at_least; [apply gain_pos|exact K].
Qed.

(* Heads of one sum that differ in a lane differ in another one too, so the lead is twice that. *)
Theorem heads_of_one_sum k : over lanes head_u = over lanes head_v -> (k < lanes)%nat -> head_u k <> head_v k ->
  2 * margin <= lead.
Proof.
  intros One K NE.
  assert (T : forall n, (k < n)%nat -> (n <= lanes)%nat ->
    (exists j, (j < n)%nat /\ j <> k /\ head_u j <> head_v j) \/ over n head_u - over n head_v = head_u k - head_v k).
  { assert (Z : forall n, (n <= k)%nat -> (exists j, (j < n)%nat /\ j <> k /\ head_u j <> head_v j) \/ over n head_u =
    over n head_v).
    { induction n as [|n IH]; intros L; [now right|]. destruct IH as [(j & J & H)|IH]; [lia|left; exists j; split;
      [lia|exact H]|].
      destruct (Req_dec (head_u n) (head_v n)) as [E|E]; [right; unfold over in *; simpl; now rewrite IH, E|].
      left. exists n. split; [lia|]. split; [lia|exact E]. }
    induction n as [|n IH]; intros L M; [lia|]. unfold over in *. simpl. destruct (Nat.eq_dec k n) as [<-|N].
    - destruct (Z k (le_n k)) as [(j & J & H)|E]; [left; exists j; split; [lia|exact H]|right; rewrite E; lra].
    - destruct IH as [(j & J & H)|E]; [lia|lia|left; exists j; split; [lia|exact H]|].
      destruct (Req_dec (head_u n) (head_v n)) as [Q|Q]; [right; lra|left; exists n; split; [lia|split; [lia|exact
        Q]]]. }
  destruct (T lanes K (le_n lanes)) as [(j & J & N & H)|E]; [|exfalso; apply NE; lra].
  apply Rle_trans with (2 := gains).
  assert (G : forall n, (n <= lanes)%nat -> (j < n)%nat -> (k < n)%nat -> gain j + gain k <= over n gain).
  { induction n as [|n IH]; intros L Jn Kn; [lia|]. change (over (S n) gain) with (over n gain + gain n).
    destruct (Nat.eq_dec n j) as [->|Dj]; [|destruct (Nat.eq_dec n k) as [->|Dk]].
    - assert (gain k <= over j gain) by (apply over_at_least; [intros i I; apply gain_pos; lia|lia]). lra.
    - assert (gain j <= over k gain) by (apply over_at_least; [intros i I; apply gain_pos; lia|lia]). lra.
    - specialize (IH ltac:(lia) ltac:(lia) ltac:(lia)). pose proof (gain_pos n ltac:(lia)). lra. }
  specialize (G lanes (le_n lanes) J K). pose proof (gain_where_they_differ j J H). pose proof (gain_where_they_differ
    k K NE). lra.
Qed.
End Sides.
End Readout.

(* The bound is linear in a and in the sum of weights, so it is least at a corner. *)
Theorem least_at_a_corner p q r m low high omega a g : low <= a <= high -> Rabs (g - a) <= omega ->
  m <= p * low + q * (low - omega) + r -> m <= p * low + q * (high + omega) + r ->
  m <= p * high + q * (low - omega) + r -> m <= p * high + q * (high + omega) + r ->
  m <= p * a + q * g + r.
Proof.
  intros A G. apply Rabs_le_inv in G. intros. destruct (Rle_dec 0 p) as [P|P], (Rle_dec 0 q) as [Q|Q]; try apply Rnot_le_lt in P; try apply Rnot_le_lt in Q; nra.
Qed.

(* Lemma of one integer: a linear lead that is positive at both ends is so between. *)
Theorem positive_between p r x0 x1 x : x0 <= x <= x1 -> 0 < p * x0 + r -> 0 < p * x1 + r -> 0 < p * x + r.
Proof. intros. destruct (Rle_dec 0 p); [|apply Rnot_le_lt in n]; nra. Qed.

(* Lemma of sums that decide: several values in one number. The triples are (w, u, B) of w·v, v a multiple of u and
   |v| ≤ B, the last first. *)
Fixpoint room (l : list (R * R * R)) : Prop :=
  match l with
  | [] => True
  | (w, u, _) :: l => 0 < w /\ sum (map (fun p => fst (fst p) * snd p) l) < w * u /\ room l
  end.

Definition packed (l : list (R * R * R)) (v : list R) : R :=
  sum (map (fun p => fst (fst (fst p)) * snd p) (combine l v)).

Lemma packed_at_most l v : room l -> Forall2 (fun p x => Rabs x <= snd p) l v ->
  Rabs (packed l v) <= sum (map (fun p => fst (fst p) * snd p) l).
Proof.
  intros Rm F. induction F as [|[[w u] b] x l v Hx F IH]; unfold packed in *; simpl in *; [rewrite Rabs_R0; lra|].
  destruct Rm as (W & _ & Rm). specialize (IH Rm). apply Rle_trans with (1 := Rabs_triang _ _).
  rewrite Rabs_mult, (Rabs_pos_eq w) by lra.
  assert (w * Rabs x <= w * b) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Theorem sums_that_decide l v : room l ->
  Forall2 (fun p x => Rabs x <= snd p /\ (x = 0 \/ snd (fst p) <= Rabs x)) l v ->
  packed l v = 0 -> Forall (fun x => x = 0) v.
Proof.
  intros Rm F. induction F as [|[[w u] b] x l v [Hx Hu] F IH]; [constructor|]. simpl in Hx, Hu, Rm.
  destruct Rm as (W & Rw & Rm). unfold packed. simpl. fold (packed l v). intros S.
  assert (B : Rabs (packed l v) <= sum (map (fun p => fst (fst p) * snd p) l)).
  { apply packed_at_most; [exact Rm|]. clear - F. induction F as [|? ? ? ? [H _]]; constructor; assumption. }
  destruct Hu as [->|Hu].
  - constructor; [reflexivity|]. apply IH; [exact Rm|]. lra.
  - exfalso. assert (E : packed l v = - (w * x)) by lra. rewrite E, Rabs_Ropp, Rabs_mult, (Rabs_pos_eq w) in B by lra.
    assert (w * u <= w * Rabs x) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(* Sums of few lanes that decide: what is 0 because the few sums M·x are, where D = P·M. *)
Theorem few_sums_decide (lanes few : nat) (D P M : nat -> nat -> R) (x : nat -> R) i :
  (forall j, (j < lanes)%nat -> D i j = over few (fun k => P i k * M k j)) ->
  (forall k, (k < few)%nat -> over lanes (fun j => M k j * x j) = 0) -> over lanes (fun j => D i j * x j) = 0.
Proof.
  intros E Z. rewrite (over_ext lanes _ (fun j => over few (fun k => P i k * (M k j * x j)))).
  - clear E. assert (S : over lanes (fun j => over few (fun k => P i k * (M k j * x j))) =
      over few (fun k => P i k * over lanes (fun j => M k j * x j))).
    { clear Z. induction few as [|n IH]; unfold over in *; simpl.
      - induction lanes as [|m IHm]; simpl; [reflexivity|rewrite IHm; ring].
      - rewrite <- IH. pose proof (over_plus lanes (fun j => upto (fun k => P i k * (M k j * x j)) n) (fun j => P i n
        * (M n j * x j))) as Q.
        unfold over in Q. rewrite Q. f_equal. apply over_scaled. }
    rewrite S. rewrite (over_ext few _ (fun _ => 0)); [|intros k K; rewrite (Z k K); ring].
    unfold over. clear. induction few as [|n IH]; simpl; [reflexivity|rewrite IH; ring].
  - intros j J. rewrite (E j J). rewrite Rmult_comm, <- over_scaled. apply over_ext. intros k _. ring.
Qed.
