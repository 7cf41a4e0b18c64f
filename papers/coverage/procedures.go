package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// A procedureStudy describes a study of procedures on sets of synthetic images of shapes. The
// factor x is the horizontal offset of a shape.
type procedureStudy struct {
	n, sets       int    // images of a set; number of sets
	networks, out string // folder of the trained networks' checkpoints; folder of the study
	probes        bool   // the measures of package probe and no others
}

// write writes the study. Each set is an entry of shapes with a seed of its own.
func (p procedureStudy) write() error {
	if p.n < 20 || p.sets < 2 {
		return fmt.Errorf("%d sets of %d images: at least 2 sets of 20 are needed", p.sets, p.n)
	}
	networks, err := filepath.Abs(p.networks)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.out, 0o777); err != nil {
		return err
	}
	study := bytes.NewBufferString("name: coverage\nseed: 1\ndata:\n")
	for i := range p.sets {
		fmt.Fprintf(study, "  - {name: \"%03d\", shapes: {n: %d, size: 16, seed: %d}}\n", i, p.n, 1000+i)
	}
	fmt.Fprintf(study, `models: {checkpoints: %q, layers: penultimate}
transforms: {name: tilt, rotate: {values: [-20, -10, 10, 20]}}
measures:
`, networks)
	if p.probes {
		study.WriteString(`  - informativeness: {factors: [x], epochs: 20}
  - parameter-equivariance: {epochs: 20}
  - representation-equivariance: {epochs: 20}
  - invariance
  - disentanglement: {factors: [x], epochs: 20}
  - retrieval
`)
	} else {
		fmt.Fprintf(study, `  - firing
  - informativeness: {probe: [slp], factors: [x], epochs: 20}
  - robust-accuracy: {radius: 0.3, steps: 5}
  - stir: {between: all, images: %d, optimiser: adam, steps: 60}
`, p.n)
	}
	return os.WriteFile(filepath.Join(p.out, "study.yaml"), study.Bytes(), 0o666)
}
