// Package blocks chooses some layers along the depth of a network: the ends of its blocks and
// stages, and the layer that its classifier reads. A stage is a run of blocks of one resolution.
//
// It analyses the structure of the graph, not the names of its tensors, so the choice does not
// depend on the program that exported the network. Most networks are a chain of blocks. Between two
// blocks there is a tensor that every path from the input to the output goes through, here called a
// cut. A block ends where branches with weights join: in the sum of a residual block (ResNet,
// ConvNeXt, ViT) or in the concatenation of the branches of a fire module (SqueezeNet), inception
// module, ShuffleNet unit or dense block. In a network without blocks (AlexNet, VGG) the chosen
// layers are activations, preferably those before a pooling.
package blocks
