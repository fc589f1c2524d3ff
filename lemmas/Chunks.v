(* A chunk of a delta rule whose keys are one-hot: what its triangle and its sums hold. *)

From Coq Require Import Arith ZArith Reals List Lra Lia.
From Flocq Require Import Core.
From Lemmas Require Import Formats Sums Totals Readout Delta.
Import ListNotations.
Open Scope R_scope.

Section Chunks.
Variable d : nat.
Variable row : nat -> nat.                  (* the row of each position's key *)
Variable right : nat -> R.                  (* right sides, one for each position *)

Lemma products_of_keys m n : (m < d)%nat -> dot d (one_hot m) (one_hot n) = if Nat.eq_dec m n then 1 else 0.
Proof. intros M. rewrite reads_its_row by exact M. reflexivity. Qed.

(* The right side of the last position before n with this row; 0 if there is none. *)
Fixpoint last_with (r n : nat) : R :=
  match n with O => 0 | S n => if Nat.eq_dec (row n) r then right n else last_with r n end.

(* Lemma of overwriting: in (I + triangle)·w = right, where the triangle is 1 at earlier positions of one row and else
  0,
   w is a right side or the difference of two: so the entries of the inverse are 0, 1 and −1. *)
Theorem inverse_of_the_triangle n : let w l := right l - last_with (row l) l in
  w n + upto (fun l => (if Nat.eq_dec (row l) (row n) then 1 else 0) * w l) n = right n.
Proof.
  intros w. assert (E : forall r n, upto (fun l => (if Nat.eq_dec (row l) r then 1 else 0) * w l) n = last_with r n).
  { intros r m. induction m as [|m IH]; [reflexivity|]. simpl. rewrite IH. destruct (Nat.eq_dec (row m) r) as [<-|D];
    [|ring].
    unfold w. ring. }
  rewrite E. unfold w. ring.
Qed.

(* What a position writes is the difference of its value and what its row holds. *)
Theorem writes_are_differences m v s : (m < d)%nat -> v - dot d (one_hot m) s = v - s m.
Proof. intros M. now rewrite reads_its_row. Qed.
End Chunks.

(* So sums of 65 such terms, 130 values, are exact in any order where these are within the format's units. *)
Theorem sums_of_a_chunk F e reach l : (length l <= 65)%nat -> (least F <= e)%Z ->
  (forall x, In x l -> multiple e x /\ Rabs x <= 2 * reach) -> 0 <= reach ->
  130 * reach <= two (bits F + e) -> 130 * reach <= largest F -> within F e l.
Proof.
  intros N E H P U T. split; [exact E|]. split; [intros x Hx; now apply H|].
  assert (B : above l <= INR (length l) * (2 * reach) /\ under l <= INR (length l) * (2 * reach)).
  { clear N. induction l as [|x l IH]; [unfold above, under; simpl; lra|].
    destruct IH as [A B]; [intros y Hy; apply H; now right|]. destruct (H x (or_introl eq_refl)) as [_ X].
    apply Rabs_le_inv in X. change (length (x :: l)) with (S (length l)). rewrite S_INR.
    unfold above, under in *. cbn [map sum fold_right]. fold (sum (map (fun x => Rmax x 0) l)) (sum (map (fun x =>
      Rmax (- x) 0) l)).
    assert (Rmax x 0 <= 2 * reach) by (apply Rmax_lub; lra). assert (Rmax (- x) 0 <= 2 * reach) by (apply Rmax_lub;
      lra). lra. }
  assert (L : INR (length l) <= 65) by (replace 65 with (INR 65) by (simpl; lra); now apply le_INR).
  assert (Q : INR (length l) * (2 * reach) <= 65 * (2 * reach)) by (apply Rmult_le_compat_r; lra).
  split; apply Rmax_lub; lra.
Qed.
