// Package accel rewrites graphs to use native operators where these are faster on the CPU than the
// standard ones.
//
// Package ort calls Rewrite when it makes a session for the CPU. The pass recognises subgraphs of
// standard operators:
//
//   - groups of convolutions with constant weights, ReLUs, sums and their gradients are computed in NHWC;
//   - convolutions with variable weights, and their gradients as package grad writes them, become one operator each;
//   - the update of Adam, as package train writes it, becomes one operator.
//
// Results are the same to rounding. The build tag noaccel leaves the operators out, and
// ort.Options.NoAcceleration switches the pass off. README.md says what each operator gains.
package accel
