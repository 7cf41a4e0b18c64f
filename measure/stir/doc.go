// Package stir asks which inputs are the same to a reference model, and whether they are the same to another one: shared
// invariances.
//
// For each image x a search (package invert) finds another one, x', that the reference model m1 maps to the same
// representation, starting from noise. STIR, Similarity Through Inverted Representations (Nanda et al. 2022, equation 6), is how
// similar the other model's representations of the two are:
//
//	STIR(m2 | m1) = S(m2(X), m2(X')),   m1(X') ~ m1(X),
//
// where S is a similarity of two sets of representations, linear CKA unless the settings say otherwise. It is 1 if m2 ignores all that
// m1 ignores, and has a direction: a constant model shares every invariance of any other, and not the reverse.
//
// Adversarial inversion looks for the x' that m2 tells apart from x most (equation 7), which is the worst case;
// controversial stimuli do the same from x itself, and how far they are from it says how hard the two models are to set at
// variance (appendix C).
//
// Beside STIR stand the similarity of m1(X) and m2(X), which does not know of invariances; the agreement of the two models'
// predictions on X'; how near m1(X') came to m1(X), relative to |m1(X)|, with the share of samples that missed the bound
// delta (equation 2); and the distance between x and x' in the images' l2 norm.
package stir
