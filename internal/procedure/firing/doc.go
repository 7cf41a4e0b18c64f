// Package firing measures whether a single unit of a network still responds to its feature when the
// input is transformed. It computes the firing-rate invariance of Goodfellow, Le, Saxe, Lee and Ng,
// "Measuring Invariances in Deep Networks" (NIPS 2009), section 4.
//
// A unit i with activation h_i(x) fires if s_i h_i(x) reaches a threshold. The threshold is chosen
// so that the unit fires for about one random input in a hundred (the setting rate, 0.01 by
// default). P(x) is the distribution of the inputs, of which the data are a sample. With N inputs
// from P(x) and k = ceil(0.01 N),
//
//	q_i  = the k-th largest s_i h_i(x)
//	f_i  = 1 if s_i h_i(x) >= q_i, else 0
//	G(i) = mean of f_i over P(x)                      global firing rate
//	L(i) = mean over z in Z, x in T(z) of f_i(x)      local firing rate
//	S(i) = L(i) / G(i)                                invariance score (section 4)
//
// Z is the set of reference stimuli, the inputs that activate the unit most; the code calls them
// references. T(z) is the trajectory of z: z itself and its transformed versions. In this package,
// an image is any input on a trajectory, even if it is audio. The sign s_i is -1 or 1, whichever
// gives the higher score, or 1 for layers that the study declares sparse, such as the output of a
// ReLU. The score of a layer is the mean over the fraction p of its units that have the highest
// scores (Inv_p in the paper). The data or the transformation have one or two kinds of trajectory,
// such as the phase and the orientation of gratings; each kind is scored separately. The place of a
// sample is its position in the random order in which the study reads the samples (measure.Layout).
// A job is one run of the measure on a model and its data (procedure.Job). It does its work in
// stages, each of which is a pass over the inputs or over images on trajectories. Units are divided
// into groups, so that the values that a stage holds for one group fit into memory. The part of a
// group that is in one layer is a chunk.
//
// Inputs that tie with the threshold fire, so q_i is the largest threshold with a global rate of at
// least 1 %. (The paper's sentence on ties has the opposite inequality.) S is at most N / k, and 1
// for a unit that fires on the trajectories as often as on all inputs. A unit that is constant on
// the inputs fires at every one: G = L = S = 1. Such a unit is not selective. The null of a score
// is the same score with inputs drawn at random in place of the references.
//
// New returns the measure for studies. Score and NetworkScore compute the formulas. A
// ThresholdEstimator finds the thresholds of many units in one pass over the inputs, exactly or by
// a quantile sketch.
package firing
