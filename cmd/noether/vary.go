package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/onnx/rewrite"
)

func varyCommand() *cobra.Command {
	var out string
	var v rewrite.Perturbation
	c := &cobra.Command{
		Use:   "vary MODEL",
		Short: "Write a model with pruned, noisy or coarser weights",
		Long: `Writes an ONNX model with weights that are worse by a known amount, for studies that need many models over a wide range of
accuracy. What varies are the weights of convolutions, matrix products and recurrent layers, each tensor by itself; biases and
normalisation stay. Noise comes first, then pruning, then rounding.`,
		Example: "  noether vary resnet20.onnx --prune 0.5 -o resnet20-half.onnx\n" +
			"  noether vary resnet20.onnx --noise 0.2 --seed 3 -o resnet20-noisy.onnx",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch err := v.Check(); {
			case err != nil:
				return &usageError{c, err}
			case out == "":
				return usagef(c, "say by -o where to write the model")
			case v.Noise == 0 && v.Prune == 0 && v.Bits == 0:
				return usagef(c, "say how to vary it: --noise, --prune or --bits")
			}
			return vary(args[0], out, v)
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "where to write the model")
	f.Float64Var(&v.Noise, "noise", 0, "add normal noise of this deviation, relative to that of each tensor")
	f.Float64Var(&v.Prune, "prune", 0, "set this share of each tensor, the elements of the smallest magnitude, to 0")
	f.IntVar(&v.Bits, "bits", 0, "round to so many bits, 2 to 16")
	f.Uint64Var(&v.Seed, "seed", 1, "of the noise")
	return c
}

func vary(path, out string, v rewrite.Perturbation) error {
	m, err := rewrite.ReadFloat32(path)
	if err != nil {
		return err
	}
	if err := besideWeights(m, path, out); err != nil {
		return err
	}
	varied, err := rewrite.Perturb(m, v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	raw, err := varied.Bytes()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(out, raw); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	fmt.Fprintln(os.Stderr, "noether: wrote "+out)
	return nil
}
