package plan

// Resolved is the text of the study as it was run, with the hashes of models and data.
func (p *Plan) Resolved() (string, error) {
	for _, m := range p.Models {
		m.Entry.SetSHA256(m.Net.SHA256())
	}
	for _, d := range p.Data {
		d.Entry.SetFingerprint(d.Source.Fingerprint())
	}
	return p.Study.Resolved()
}

// KeepHashes takes over the hashes of models that are not open here from the study as others have
// resolved it.
func (p *Plan) KeepHashes(resolved []byte) {
	p.Study.KeepHashes(resolved, func(i int) bool { return p.find(i) != nil })
}
