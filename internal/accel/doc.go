// Package accel rewrites graphs to use native operators, written in C, where these are faster on
// the CPU than the standard ones.
//
// Package ort calls Rewrite when it makes a session for the CPU. Rewrite recognises subgraphs of
// standard operators:
//
//   - groups of convolutions with constant weights, ReLUs, sums and their gradients are computed
//     in NHWC, that is, with channels last;
//   - convolutions with variable weights, and their gradients as package grad writes them, become
//     one operator each;
//   - BatchNormalization in training mode, and its gradient, become one operator each, with the
//     ReLUs and sums around them;
//   - the update of Adam, as package train writes it, becomes one operator.
//
// Results are the same up to rounding. The operators exist for amd64 processors with AVX2. The
// build tag noaccel leaves them out of the program, and ort.Options.NoAcceleration leaves graphs as
// they are. README.md lists what each operator gains.
package accel
