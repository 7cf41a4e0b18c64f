package model

// TokensOf is tokensOf, for tests.
var TokensOf = tokensOf
