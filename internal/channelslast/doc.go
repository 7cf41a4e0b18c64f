// Package channelslast puts groups of nodes of a graph to feature maps with the channels of a place side by side, where they are computed by convolutions of package
// kernels.
//
// Those are fastest with their channels last, which is how they multiply, and with the sums, activations and masks that follow written in the same pass. Putting
// channels last and back costs as much as a pass over the feature map, so it is done around groups of nodes that are worth it.
//
// What it writes runs in ONNX Runtime as package ort loads it, on the processor.
package channelslast
