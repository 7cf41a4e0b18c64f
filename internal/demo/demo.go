// Package demo holds three small classifiers of shapes, and the study that compares them.
//
//   - plain is a convolutional network that was trained on upright shapes only (turned by at most
//     15 degrees).
//   - augmented is the same network, trained on rotated, shifted and scaled shapes too.
//   - symmetric was trained on upright shapes, and its feature maps are exactly equivariant under
//     quarter turns by construction.
//
// The program in the folder networks trains them.
package demo

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/atomicfile"
)

//go:embed plain.onnx augmented.onnx symmetric.onnx demo.yaml
var files embed.FS

// Write writes the three models and the study into a folder, which it creates if needed, and
// returns the path of the study.
func Write(folder string) (study string, err error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", fmt.Errorf("writing the demo: %w", err)
	}
	entries, err := files.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err == nil {
			err = atomicfile.Write(filepath.Join(folder, e.Name()), data)
		}
		if err != nil {
			return "", fmt.Errorf("writing the demo: %w", err)
		}
	}
	return filepath.Join(folder, "demo.yaml"), nil
}
