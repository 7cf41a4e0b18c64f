package plan

// Resolved returns the text of the resolved study.
func (p *Plan) Resolved() (string, error) {
	for _, m := range p.Models {
		m.Entry.SetSHA256(m.Net.SHA256())
	}
	for _, d := range p.Data {
		d.Entry.SetFingerprint(d.Source.Fingerprint())
	}
	return p.Study.Resolved()
}

// KeepHashes copies the hashes of models that are not open in this plan from an earlier resolved
// study.
func (p *Plan) KeepHashes(resolved []byte) {
	p.Study.KeepHashes(resolved, func(i int) bool { return p.openModelAt(i) != nil })
}
