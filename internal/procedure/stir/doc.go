// Package stir measures shared invariances: whether inputs with the same representation by a
// reference model also have the same representation by another model.
//
// For each image x a search (package invert) starts from noise and finds an image x' that the
// reference model m1 maps to the same representation: an inverted representation. STIR, Similarity
// Through Inverted Representations (Nanda et al. 2022, equation 6), is the similarity of the other
// model's representations of the two:
//
//	STIR(m2 | m1) = S(m2(X), m2(X')),   m1(X') ~ m1(X),
//
// where X is the set of the images x, X' that of the images x', and S a similarity of two sets of
// representations, by default linear CKA (centred kernel alignment). STIR is 1 if m2 has all
// invariances of m1. It is not symmetric: a constant model shares every invariance of any other
// model, but not the reverse.
//
// Adversarial inversion finds the x' whose representation by m2 differs most from that of x
// (equation 7), the worst case. Controversial stimuli are found in the same way, starting from x.
// Their distance from x measures how difficult it is to make the two models disagree (appendix C).
//
// Further statistics are the similarity of m1(X) and m2(X), which ignores invariances; the
// agreement of the two models' predictions on X'; the distance between m1(X') and m1(X) relative to
// |m1(X)|, with the fraction of samples for which it is above the setting delta (equation 2); and
// the l2 distance between x and x'.
//
// A job is one run of the measure on two models, A and B, which are m1 and m2 (procedure.Job). A
// trial is one of several repetitions of a study, with other noise and other images.
package stir
