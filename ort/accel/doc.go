// Package accel rewrites graphs to use native operators where the processor computes these faster than the standard ones.
//
// Package ort calls Rewrite when it makes a session for the processor. The pass recognises subgraphs of standard operators:
//
//   - groups of convolutions with constant weights, ReLUs, sums and their gradients are computed with the channels last;
//   - convolutions with variable weights, and their gradients as package grad writes them, become one operator each;
//   - the update of Adam, as package train writes it, becomes one operator.
//
// Results are the same to rounding. The build tag noaccel leaves the operators out, and ort.Options.NoAccelerate switches
// the pass off. README.md says what each operator gains.
package accel
