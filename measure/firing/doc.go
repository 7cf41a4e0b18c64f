// Package firing measures whether a single unit keeps responding to its feature while the input is transformed: the firing-rate
// invariance of Goodfellow, Le, Saxe, Lee and Ng, "Measuring Invariances in Deep Networks" (NIPS 2009).
//
// A unit h_i fires where s_i h_i(x) is at least a threshold, chosen so that it fires for about one random input in a
// hundred. With N inputs from P(x) and k = ceil(0.01 N),
//
//	q_i  = the k-th largest s_i h_i(x)
//	f_i  = 1 where s_i h_i(x) >= q_i, else 0
//	G(i) = mean of f_i over P(x)                      global firing rate
//	L(i) = mean over z in Z, x in T(z) of f_i(x)      local firing rate
//	S(i) = L(i) / G(i)                                invariance score (section 4)
//
// Z are the inputs that drive the unit most, T(z) a trajectory: z itself and what a transformation makes of it, gamma = 0
// counted once. G includes ties, so q_i is the largest threshold with a global rate of at least 1 %. (The paper's sentence on
// ties has the inequality the wrong way round.) The sign s_i is the one with the better score, or +1 for layers that are
// declared sparse. The score of a layer is the mean over the top proportion p of its units.
//
// S is at most N / k, and about 1 for a unit whose firing has nothing to do with its feature. A unit that is constant on P(x)
// fires always at any threshold: G = L = S = 1, and it is reported as not selective.
//
// Threshold, Score and Network are the pure functions. A Global gathers thresholds of many units in one pass, exactly: it
// keeps the k largest values of either sign, so its memory does not grow with the inputs beyond k, and it can be merged. Where an Error
// is allowed it keeps a quantile sketch of them, whose memory does not grow with k either, but for its logarithm.
// New is the measure that studies name.
package firing
