(* Latches whose flags, and gates whose values, depend on the position alone: delays. *)

From Coq Require Import Arith Reals List Lra Lia.
From Lemmas Require Import Sums Kept.
Import ListNotations.
Open Scope R_scope.

(* The last position up to t whose flag is 1; 0 if there is none. *)
Fixpoint last_open (flag : nat -> bool) (t : nat) : nat :=
  match t with O => O | S s => if flag (S s) then S s else last_open flag s end.

Lemma latch_reads flag stored t :
  latch flag stored t = if (last_open flag t =? 0)%nat then 0 else stored (last_open flag t).
Proof. induction t as [|t IH]; [reflexivity|]. simpl. destruct (flag (S t)); [reflexivity|exact IH]. Qed.

Lemma last_open_upto flag t : (last_open flag t <= t)%nat.
Proof. induction t as [|t IH]; simpl; [|destruct (flag (S t))]; lia. Qed.

Section Rings.
(* The members of a sum: each a latch's flag, which no letter has a say in, and the number that its gate is then. *)
Variable members : list ((nat -> bool) * (nat -> R)).
Definition weight_of (t place : nat) : R :=   (* with which weight the sum reads what stood at a place *)
  sum (map (fun m => if (last_open (fst m) t =? place)%nat then snd m t else 0) members).

Definition read (stored : nat -> R) (t : nat) : R := sum (map (fun m => snd m t * latch (fst m) stored t) members).

Lemma read_by_places stored t : read stored t = sum (map (fun p => weight_of t p * stored p) (seq 1 t)).
Proof.
  unfold read, weight_of. induction members as [|[f g] l IH].
  - simpl. generalize (seq 1 t). induction l as [|p l IH]; simpl; [reflexivity|rewrite <- IH; ring].
  - cbn [map sum fold_right fst snd]. fold (sum (map (fun m => snd m t * latch (fst m) stored t) l)). rewrite IH.
    clear IH.
    assert (E : g t * latch f stored t =
      sum (map (fun p => (if (last_open f t =? p)%nat then g t else 0) * stored p) (seq 1 t))).
    { rewrite latch_reads. pose proof (last_open_upto f t) as U. revert U. generalize (last_open f t) as q. intros q U.
      assert (G : forall k n, sum (map (fun p => (if (q =? p)%nat then g t else 0) * stored p) (seq k n)) =
        if ((k <=? q) && (q <? k + n))%nat%bool then g t * stored q else 0).
      { intros k n. revert k. induction n as [|n IH]; intros k.
        - destruct (Nat.leb_spec k q), (Nat.ltb_spec q (k + 0)); simpl; try reflexivity; lia.
        - simpl seq. simpl map. cbn [sum fold_right]. fold (sum (map (fun p => (if (q =? p)%nat then g t else 0) *
          stored p) (seq (S k) n))).
          rewrite IH. destruct (Nat.eqb_spec q k) as [->|D].
          + destruct (Nat.leb_spec (S k) k), (Nat.leb_spec k k), (Nat.ltb_spec k (k + S n)); simpl; try lia; ring.
          + destruct (Nat.leb_spec (S k) q), (Nat.leb_spec k q), (Nat.ltb_spec q (S k + n)), (Nat.ltb_spec q (k + S n));
              simpl; try lia; ring. }
      rewrite G. destruct (Nat.eqb_spec q 0) as [->|D].
      - simpl. ring.
      - destruct (Nat.leb_spec 1 q), (Nat.ltb_spec q (1 + t)); simpl; try lia; reflexivity. }
    rewrite E. generalize (seq 1 t). induction l0 as [|p k IH]; simpl; [ring|]. simpl in IH.
    apply Rplus_eq_reg_l with (- (sum (map (fun p => (if (last_open f t =? p)%nat then g t else 0) * stored p) k) +
      sum (map (fun p => sum (map (fun m => if (last_open (fst m) t =? p)%nat then snd m t else 0) l) * stored p) k))).
    ring_simplify in IH. rewrite <- IH. ring.
Qed.

(* Lemma of rings: where the places read so, known for each position, are the one k back with one weight and no other,
  and
   none before there is one, the sum is a delay, whatever is stored. *)
Theorem rings k w longest :
  (forall t p, (1 <= p <= t)%nat -> (t <= longest)%nat -> weight_of t p = if (p + k =? t)%nat then w else 0) ->
  forall stored t, (t <= longest)%nat -> read stored t = if (k <? t)%nat then w * stored (t - k)%nat else 0.
Proof.
  intros H stored t T. rewrite read_by_places.
  assert (E : sum (map (fun p => weight_of t p * stored p) (seq 1 t)) =
    sum (map (fun p => (if (p + k =? t)%nat then w else 0) * stored p) (seq 1 t))).
  { f_equal. apply map_ext_in. intros p Hp. apply in_seq in Hp. rewrite H by lia. reflexivity. }
  rewrite E. clear E H T longest.
  assert (G : forall a n, sum (map (fun p => (if (p + k =? t)%nat then w else 0) * stored p) (seq a n)) =
    if ((a + k <=? t) && (t <? a + n + k))%nat%bool then w * stored (t - k)%nat else 0).
  { intros a n. revert a. induction n as [|n IH]; intros a.
    - destruct (Nat.leb_spec (a + k) t), (Nat.ltb_spec t (a + 0 + k)); simpl; try reflexivity; lia.
    - simpl seq. simpl map. cbn [sum fold_right]. fold (sum (map (fun p => (if (p + k =? t)%nat then w else 0) *
      stored p) (seq (S a) n))).
      rewrite IH. destruct (Nat.eqb_spec (a + k) t) as [<-|D].
      + replace (a + k - k)%nat with a by lia.
        destruct (Nat.leb_spec (S a + k) (a + k)), (Nat.leb_spec (a + k) (a + k)), (Nat.ltb_spec (a + k) (a + S n +
          k)); simpl; try lia; ring.
      + destruct (Nat.leb_spec (S a + k) t), (Nat.leb_spec (a + k) t), (Nat.ltb_spec t (S a + n + k)), (Nat.ltb_spec t
        (a + S n + k));
          simpl; try lia; ring. }
  rewrite G. destruct (Nat.leb_spec (1 + k) t), (Nat.ltb_spec t (1 + t + k)), (Nat.ltb_spec k t); simpl; try lia;
    reflexivity.
Qed.
End Rings.
