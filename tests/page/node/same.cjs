// Whether two scripts are the same program: usage: node same.cjs TSC WHOLE JOINED
const fs = require('fs'), path = require('path');
const [tsc, ...files] = process.argv.slice(2);
const ts = require(path.join(path.dirname(tsc), '..', 'lib', 'typescript.js'));

// Brackets are in the tree's shape.
function* nodes(node) {
    while (ts.isParenthesizedExpression(node)) node = node.expression;
    yield `${ts.SyntaxKind[node.kind]} ${node.operator ?? ''} ${node.text ?? ''}`;
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
const at = whole.findIndex((one, i) => one !== joined[i]);
if (at >= 0 || whole.length !== joined.length) {
    console.error(`expected ${whole.slice(at, at + 3)}\nfound ${joined.slice(at, at + 3)}`);
    process.exit(1);
}
