package study

import (
	"github.com/noether-ml/noether/internal/config"
)

// resolved is the text of the study as it was run: paths absolute, variables filled in, the SHA-256 of every model and
// the fingerprint of every data set beside it. It is a study file itself, and running it checks the hashes.
func (p *Plan) resolved() (string, error) {
	s := p.Study
	for _, path := range s.paths() {
		path.node.Text = s.absolute(path.text)
	}
	// What keys depend on is written out, lest a default of another version make other cells of it.
	s.node.SetInt("seed", int64(s.Seed))
	s.node.SetInt("memory", int64(s.Memory))
	for _, m := range p.models {
		m.spec.node.Set("sha256", m.model.SHA256())
	}
	for _, d := range p.data {
		d.spec.node.Set("fingerprint", d.source.Fingerprint())
	}
	raw, err := config.Encode(s.node)
	return string(raw), err
}

// paths lists every path that the study names.
func (s *Study) paths() []*Path {
	var out []*Path
	for i := range s.Models {
		out = append(out, &s.Models[i].ONNX)
		if c := s.Models[i].Preprocess.config; c != nil {
			out = append(out, c)
		}
	}
	for i := range s.Data {
		out = append(out, s.Data[i].paths()...)
	}
	return out
}

func (d *Data) paths() []*Path {
	var out []*Path
	add := func(ps ...*Path) {
		for _, p := range ps {
			if p != nil {
				out = append(out, p)
			}
		}
	}
	for _, c := range []*cifarKeys{d.CIFAR10, d.CIFAR100} {
		if c != nil {
			for i := range c.Files {
				add(&c.Files[i])
			}
		}
	}
	if k := d.IDX; k != nil {
		add(&k.Images, k.Labels)
	}
	if k := d.Images; k != nil {
		add(&k.Folder, k.Labels)
	}
	if k := d.Arrays; k != nil {
		add(&k.Inputs, k.Labels)
	}
	if k := d.Pairs; k != nil {
		add(&k.Clean, &k.Moved)
	}
	return out
}
