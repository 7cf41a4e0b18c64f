package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/onnx/rewrite"
)

func varyCommand() *cobra.Command {
	var out string
	var p rewrite.Perturbation
	c := &cobra.Command{
		Use:   "vary MODEL",
		Short: "Write a model with pruned, noisy or quantised weights",
		Long: `Writes an ONNX model whose weights are degraded by a known amount, for studies that need many models over a wide range
of accuracy. It changes the weights of convolutions, matrix products and recurrent layers, each tensor separately, but not biases
and normalisation layers. Noise is added first, then weights are pruned, then rounded.`,
		Example: "  noether vary resnet20.onnx --prune 0.5 -o resnet20-half.onnx\n" +
			"  noether vary resnet20.onnx --noise 0.2 --seed 3 -o resnet20-noisy.onnx",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch err := p.Check(); {
			case err != nil:
				return &usageError{c, err}
			case out == "":
				return usagef(c, "the output file is missing: set it with -o")
			case p.Noise == 0 && p.Prune == 0 && p.Bits == 0:
				return usagef(c, "no change is selected: set --noise, --prune or --bits")
			}
			return vary(args[0], out, p)
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "output file")
	f.Float64Var(&p.Noise, "noise", 0, "standard deviation of the normal noise to add, relative to that of each tensor")
	f.Float64Var(&p.Prune, "prune", 0, "fraction of each tensor to set to 0, the elements of the smallest magnitude")
	f.IntVar(&p.Bits, "bits", 0, "round weights to this number of bits, 2 to 16")
	f.Uint64Var(&p.Seed, "seed", 1, "seed of the noise")
	return c
}

func vary(path, out string, p rewrite.Perturbation) error {
	m, err := rewrite.ReadFloat32(path)
	if err != nil {
		return err
	}
	if err := checkOutputPath(m, path, out); err != nil {
		return err
	}
	perturbed, err := rewrite.Perturb(m, p)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := writeModel(out, perturbed); err != nil {
		return err
	}
	note("wrote " + out)
	return nil
}
