package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/spec"
)

// preprocessingCommand translates the config of a processor for the Python package.
func preprocessingCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "preprocessing FILE",
		Short:  "Print a preprocessor_config.json as the key preprocess of a study, in JSON",
		Args:   usageArgs(cobra.ExactArgs(1)),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := preprocessing.ReadConfig(args[0])
			if err != nil {
				return err
			}
			values, ok := spec.PreprocessMap(p)
			if !ok {
				return fmt.Errorf("%s asks for a spectrogram: give the path of the file as preprocess", args[0])
			}
			return json.NewEncoder(os.Stdout).Encode(values)
		},
	}
}
