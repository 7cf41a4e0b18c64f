package study

// resolved is the text of the study as it was run, with the hashes of models and data.
func (p *Plan) resolved() (string, error) {
	for _, m := range p.models {
		m.spec.SetSHA256(m.model.SHA256())
	}
	for _, d := range p.data {
		d.spec.SetFingerprint(d.source.Fingerprint())
	}
	return p.Study.Resolved()
}

// keepHashes takes over the hashes of models that are not open here from the study as others have resolved it.
func (p *Plan) keepHashes(resolved []byte) {
	p.Study.KeepHashes(resolved, func(i int) bool { return p.find(i) != nil })
}
