(* Sums over the past by classes of positions, and the item that is most like a query. *)

From Coq Require Import Arith Reals List Lra Lia.
From Lemmas Require Import Sums Totals Recall.
Import ListNotations.
Open Scope R_scope.

Section Classes.
Variable class : Type.
Hypothesis same : forall a b : class, {a = b} + {a <> b}.
Notation of := (of_key class R same).

(* Lemma of matches: a sum over positions, each of exactly one class. The numbers of a class are within an interval,
  and so
   is how often it stood. *)
Theorem sum_by_classes (lo hi least most : class -> R) classes (l : list (class * R)) : NoDup classes ->
  (forall p, In p l -> In (fst p) classes /\ lo (fst p) <= snd p <= hi (fst p)) ->
  (forall c, least c <= INR (length (of c l)) <= most c) ->
  sum (map (fun c => Rmin (least c * lo c) (most c * lo c)) classes) <= sum (map snd l) <=
  sum (map (fun c => Rmax (least c * hi c) (most c * hi c)) classes).
Proof.
  intros N I M. rewrite (key_by_key class R same snd classes l N) by (intros p Hp; now apply I).
  assert (B : forall c, INR (length (of c l)) * lo c <= sum (map snd (of c l)) <= INR (length (of c l)) * hi c).
  { intros c. assert (G : forall m : list (class * R), (forall p, In p m -> lo c <= snd p <= hi c) ->
      INR (length m) * lo c <= sum (map snd m) <= INR (length m) * hi c).
    { induction m as [|p m IH]; intros H; [simpl; lra|]. change (length (p :: m)) with (S (length m)). rewrite S_INR.
      cbn [map sum fold_right]. fold (sum (map snd m)). pose proof (H p (or_introl eq_refl)).
      specialize (IH (fun q Hq => H q (or_intror Hq))). lra. }
    apply G. intros p Hp. unfold of_key in Hp. apply filter_In in Hp as [Hp E].
    destruct (same (fst p) c) as [<-|]; [now apply I|discriminate]. }
  split; apply sum_map_le; intros c _; specialize (B c); specialize (M c).
  - apply Rle_trans with (2 := proj1 B). unfold Rmin. destruct (Rle_dec (least c * lo c) (most c * lo c));
      destruct (Rle_dec 0 (lo c)) as [Z|Z]; try apply Rnot_le_lt in Z; nra.
  - apply Rle_trans with (1 := proj2 B). unfold Rmax. destruct (Rle_dec (least c * hi c) (most c * hi c));
      destruct (Rle_dec 0 (hi c)) as [Z|Z]; try apply Rnot_le_lt in Z; nra.
Qed.

(* Among items that were seen there is one that is as like the query as any. *)
Lemma most_alike (like : class -> nat) l : l <> [] -> exists i, In i l /\ forall j, In j l -> (like j <= like i)%nat.
Proof.
  induction l as [|a l IH]; [easy|]. intros _. destruct l as [|b l].
  - exists a. split; [now left|]. intros j [<-|[]]. lia.
  - destruct IH as (i & I & H); [easy|]. destruct (Nat.le_gt_cases (like i) (like a)) as [L|L].
    + exists a. split; [now left|]. intros j [<-|J]; [lia|]. specialize (H j J). lia.
    + exists i. split; [now right|]. intros j [<-|J]; [lia|now apply H].
Qed.

(* So if the right letter leads in each case (some item stood once at least that says it, and no item that is as like
  and
   says another, and none that is more like), it leads wherever all items that are most like say one letter. *)
Variable letter : Type.
Variables (says : class -> letter) (like : class -> nat).
Variable leads : list class -> letter -> Prop.   (* of what stood so far, in any order *)

Theorem matches :
  (forall l i, In i l ->
    (forall j, In j l -> (like j <= like i)%nat /\ (like j = like i -> says j = says i)) -> leads l (says i)) ->
  forall l v, l <> [] ->
  (forall i, In i l -> (forall j, In j l -> (like j <= like i)%nat) -> says i = v) -> leads l v.
Proof.
  intros C l v N H. destruct (most_alike like l N) as (i & I & M). rewrite <- (H i I M). apply C; [exact I|].
  intros j J. split; [now apply M|]. intros E. rewrite (H i I M). apply H; [exact J|]. intros k K. rewrite E. now
    apply M.
Qed.
End Classes.

(* Lemma of matches: what an operation does to the ends. Linear ones keep an interval by the signs of their weights. *)
Theorem linear_on_intervals (l : list (R * (R * R * R))) :
  (forall p, In p l -> fst (fst (snd p)) <= snd (snd p) <= snd (fst (snd p))) ->
  sum (map (fun p => Rmin (fst p * fst (fst (snd p))) (fst p * snd (fst (snd p)))) l) <=
  sum (map (fun p => fst p * snd (snd p)) l) <=
  sum (map (fun p => Rmax (fst p * fst (fst (snd p))) (fst p * snd (fst (snd p)))) l).
Proof.
  intros H. split; apply sum_map_le; intros [w [[a b] x]] I; specialize (H _ I); simpl in *.
  - unfold Rmin. destruct (Rle_dec (w * a) (w * b)); destruct (Rle_dec 0 w) as [Z|Z]; try apply Rnot_le_lt in Z; nra.
  - unfold Rmax. destruct (Rle_dec (w * a) (w * b)); destruct (Rle_dec 0 w) as [Z|Z]; try apply Rnot_le_lt in Z; nra.
Qed.

(* A rectified form is monotone on each piece, so it lies between what it is at the ends and at breakpoints between. *)
Theorem monotone_pieces (f : R -> R) (cuts : list R) a b x :
  (forall c d, (forall e, In e cuts -> ~ (c < e < d)) -> c <= d ->
    (forall y, c <= y <= d -> f c <= f y <= f d) \/ (forall y, c <= y <= d -> f d <= f y <= f c)) ->
  a <= x <= b ->
  exists c d, (c = a \/ In c cuts) /\ (d = b \/ In d cuts) /\ a <= c <= x /\ x <= d <= b /\
    Rmin (f c) (f d) <= f x <= Rmax (f c) (f d).
Proof.
  intros M X.
  assert (L : exists c, (c = a \/ In c cuts) /\ a <= c <= x /\ forall e, In e cuts -> e <= x -> e <= c).
  { clear M. induction cuts as [|e l (c & I & B & H)]; [exists a; repeat split; auto; try lra; easy|].
    destruct (Rle_dec e x) as [E|E]; [destruct (Rle_dec c e) as [G|G]|].
    - exists e. split; [right; now left|]. split; [lra|]. intros g [<-|Hg] Q; [lra|]. specialize (H g Hg Q). lra.
    - exists c. split; [destruct I; [now left|right; now right]|]. split; [lra|]. intros g [<-|Hg] Q; [lra|now apply H].
    - exists c. split; [destruct I; [now left|right; now right]|]. split; [lra|]. intros g [<-|Hg] Q; [lra|now apply
      H]. }
  assert (U : exists d, (d = b \/ In d cuts) /\ x <= d <= b /\ forall e, In e cuts -> x <= e -> d <= e).
  { clear M L. induction cuts as [|e l (d & I & B & H)]; [exists b; repeat split; auto; try lra; easy|].
    destruct (Rle_dec x e) as [E|E]; [destruct (Rle_dec e d) as [G|G]|].
    - exists e. split; [right; now left|]. split; [lra|]. intros g [<-|Hg] Q; [lra|]. specialize (H g Hg Q). lra.
    - exists d. split; [destruct I; [now left|right; now right]|]. split; [lra|]. intros g [<-|Hg] Q; [lra|now apply H].
    - exists d. split; [destruct I; [now left|right; now right]|]. split; [lra|]. intros g [<-|Hg] Q; [lra|now apply
      H]. }
  destruct L as (c & Ic & Bc & Hc), U as (d & Id & Bd & Hd). exists c, d. repeat split; try assumption; try lra.
  - destruct (M c d) as [F|F]; try lra.
    + intros e He [E1 E2]. destruct (Rle_dec e x) as [Q|Q]; [specialize (Hc e He Q)|specialize (Hd e He)]; lra.
    + specialize (F x). apply Rle_trans with (f c); [apply Rmin_l|apply F; lra].
    + specialize (F x). apply Rle_trans with (f d); [apply Rmin_r|apply F; lra].
  - destruct (M c d) as [F|F]; try lra.
    + intros e He [E1 E2]. destruct (Rle_dec e x) as [Q|Q]; [specialize (Hc e He Q)|specialize (Hd e He)]; lra.
    + specialize (F x). apply Rle_trans with (f d); [apply F; lra|apply Rmax_r].
    + specialize (F x). apply Rle_trans with (f c); [apply F; lra|apply Rmax_l].
Qed.
