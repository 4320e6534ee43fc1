// Whether two scripts are the same program: usage: node same.cjs TSC WHOLE JOINED
// JOINED may have other names for what it declares: each for one name of WHOLE, that is no name there.
const fs = require('fs'), path = require('path');
const [tsc, ...files] = process.argv.slice(2);
const ts = require(path.join(path.dirname(tsc), '..', 'lib', 'typescript.js'));

// What an identifier names may be another's to name: a property, in an object or a pattern.
const isKey = (node, parent = node.parent) => (parent.name === node && (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent)
    || ts.isShorthandPropertyAssignment(parent) || ts.isMethodDeclaration(parent) || ts.isAccessor(parent)
    || ts.isBindingElement(parent) && !parent.propertyName && ts.isObjectBindingPattern(parent.parent)))
    || (ts.isBindingElement(parent) && parent.propertyName === node);

// Brackets are in the tree's shape.
function* nodes(node) {
    while (ts.isParenthesizedExpression(node)) node = node.expression;
    const free = ts.isIdentifier(node) && !isKey(node);
    yield free ? `name ${node.text}` : `${ts.SyntaxKind[node.kind]} ${node.operator ?? ''} ${node.text ?? ''}${ts.isVariableDeclarationList(node) && !(node.flags & ts.NodeFlags.BlockScoped) ? 'var' : ''}`;
    const children = [];
    ts.forEachChild(node, (child) => { children.push(child); });
    yield `${children.length}`;
    for (const child of children) yield* nodes(child);
}

const [whole, joined] = files.map((name) => {
    const file = ts.createSourceFile(name, fs.readFileSync(name, 'utf8'), ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
    if (file.parseDiagnostics.length) throw new Error(`${name}: ${ts.flattenDiagnosticMessageText(file.parseDiagnostics[0].messageText, ' ')}`);
    return [...nodes(file)].slice(1);
});
const names = new Map(), taken = new Map(), isName = (one) => one?.startsWith('name ');
const used = new Set(whole.filter(isName));
function isSame(one, other) {
    if (one === other && !names.has(one) && !taken.has(other)) {
        if (isName(one)) { names.set(one, other); taken.set(other, one); }
        return true;
    }
    if (!isName(one) || !isName(other)) return one === other;
    if (!names.has(one) && !taken.has(other) && !used.has(other)) { names.set(one, other); taken.set(other, one); }
    return names.get(one) === other && taken.get(other) === one;
}
const at = whole.findIndex((one, i) => !isSame(one, joined[i]));
if (at >= 0 || whole.length !== joined.length) {
    console.error(`expected ${whole.slice(at, at + 3)}\nfound ${joined.slice(at, at + 3)}`);
    process.exit(1);
}
