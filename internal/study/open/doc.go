// Package open opens what a study names: its data, the files of its models, and their
// preprocessing. It downloads URLs, and recognises data at a path by their names.
//
//	files := open.New(study, open.Options{})
//	src, err := files.Data(ctx, study.Data[0])
//
// Each kind of data is a struct of its keys in a study file, with the tags of package config and a
// method Open. Package catalog lists them.
package open
